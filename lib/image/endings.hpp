#pragma once

#include <filesystem>
#include <string>

namespace dic::image {

/// The ending of a file name in lower case: ".png" for "A.PNG".
std::string lower_case_ending(const std::filesystem::path& path);

/// True for endings of image files.
bool has_image_ending(const std::filesystem::path& path);

}  // namespace dic::image

#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <string>

namespace dic::image {

/// The ending of a file name in lower case: ".png" for "A.PNG".
std::string lower_case_ending(const std::filesystem::path& path);

/// True for endings of image files.
bool has_image_ending(const std::filesystem::path& path);

/// Name of frame i of a file with several: "clip_000012". No part of it looks like an ending, because files
/// are named after frames.
DIC_INTERNAL_API std::string frame_name(const std::filesystem::path& file, std::int64_t i);

}  // namespace dic::image

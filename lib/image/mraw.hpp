#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "image/frame_file.hpp"

namespace dic::image {

/// Opens a recording of a Photron camera: pixels without any head in NAME.mraw, described by NAME.cihx or
/// NAME.cih. `path`: any of them. Pixels of 8 and 16 bits, and packed ones of 10, 12 and 14 bits, are read.
/// Throws Refusal.
std::unique_ptr<FrameFile> open_mraw(const std::filesystem::path& path);
/// Opens the pixels with a description that has been read. Throws Refusal.
std::unique_ptr<FrameFile> open_mraw(const std::filesystem::path& pixels, std::string_view description);

}  // namespace dic::image

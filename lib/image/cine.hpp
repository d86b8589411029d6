#pragma once

#include <filesystem>
#include <memory>

#include "image/frame_file.hpp"

namespace dic::image {

/// Opens a recording of a Phantom camera (Vision Research). Pixels of 8 and 16 bits and packed ones of 10 and
/// 12 bits are read as they are stored: those of 10 bits are not linear in the light, as the camera writes
/// them. Throws Refusal, also for recordings that are compressed as JPEG.
std::unique_ptr<FrameFile> open_cine(const std::filesystem::path& path);

}  // namespace dic::image

#pragma once

#include <dic/image_io.hpp>
#include <filesystem>
#include <memory>

namespace dic {

/// Throws FileError.
std::unique_ptr<FrameSource> open_video(const std::filesystem::path& path);

}  // namespace dic

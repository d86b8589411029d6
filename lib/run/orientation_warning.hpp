#pragma once

#include <dic/image_io.hpp>
#include <string>

namespace dic::run {

/// A sentence about image files that note another orientation than the first one: a camera that looks down
/// guesses it, and the images are then turned against each other. Empty if all are alike. reference: file of
/// a separate reference, or empty.
std::string orientation_warning(const FrameSource& source, const std::string& reference);

}  // namespace dic::run

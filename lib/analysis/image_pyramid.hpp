#pragma once

#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"

namespace dic::analysis {

/// The image as 8 bit, with its range stretched to 0..255.
Image stretched(ImageView image, core::ThreadPool& pool);

/// An 8-bit image and its reductions: each has half the size of the one before, in means of 2x2 px; an odd
/// last row or column is dropped.
std::vector<Image> pyramid(Image full_size, int levels, core::ThreadPool& pool);

}  // namespace dic::analysis

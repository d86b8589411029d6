#pragma once

#include <dic/export.hpp>

#include "image/opencv_codecs.hpp"

namespace dic::image {

/// The OpenCvCodecs of this module; this function is found by its name after loading.
extern "C" DIC_EXPORT const void* dic_opencv_codecs();

}  // namespace dic::image

#pragma once

#include "image/opencv_codecs.hpp"

namespace dic {

/// The OpenCvCodecs of this module; by this name it is found after loading.
extern "C" const void* dic_opencv_codecs();

}  // namespace dic

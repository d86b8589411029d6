#include "image/opencv/table.hpp"

const dic::image::OpenCvCodecs& dic::image::opencv_codecs() {
  return *static_cast<const OpenCvCodecs*>(dic_opencv_codecs());
}

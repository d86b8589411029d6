#include "image/opencv/table.hpp"

const dic::OpenCvCodecs& dic::opencv_codecs() {
  return *static_cast<const OpenCvCodecs*>(dic_opencv_codecs());
}

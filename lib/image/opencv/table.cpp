#include "image/opencv/table.hpp"

#include "image/opencv/codecs.hpp"

namespace dic::image {
namespace {

constexpr OpenCvCodecs kCodecs{decode_with_opencv, encode_with_opencv, open_video_with_opencv,
                               open_webcam_with_opencv};

}  // namespace

const void* dic_opencv_codecs() { return &kCodecs; }

}  // namespace dic::image

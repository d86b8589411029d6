#pragma once

#include <dic/image.hpp>
#include <opencv2/core/mat.hpp>

namespace dic {

/// Grey of a picture with channels B, G, R and perhaps alpha. u8, u16 and f32; else throws Refusal.
Image grey_from_bgr(const cv::Mat& picture);

}  // namespace dic

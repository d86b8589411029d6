#pragma once

#include <dic/image.hpp>
#include <opencv2/core/mat.hpp>

namespace dic {

/// Grey of an image with channels B, G, R and perhaps alpha. u8, u16 and f32; else throws Refusal.
Image grey_from_bgr(const cv::Mat& image);

}  // namespace dic

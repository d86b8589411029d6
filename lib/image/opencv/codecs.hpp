#pragma once

#include <opencv2/core/mat.hpp>

#include "image/opencv_codecs.hpp"

namespace dic::image {

// The entries of the table OpenCvCodecs.

Image decode_with_opencv(std::vector<std::uint8_t> bytes, Content content);
std::vector<std::uint8_t> encode_with_opencv(const std::string& ending, const Raster& image);
std::unique_ptr<FrameSource> open_video_with_opencv(const std::filesystem::path& path);

std::unique_ptr<Webcam> open_webcam_with_opencv(const std::string& name);

/// The grey of an image with channels B, G, R and perhaps alpha. Throws Refusal except for u8, u16 and f32.
Image grey_from_bgr(const cv::Mat& image);

}  // namespace dic::image

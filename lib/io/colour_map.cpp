#include "io/colour_map.hpp"

#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace dic {
namespace {

ColourMap from_bgr(const cv::Mat& bgr) {
  ColourMap map;
  for (int i = 0; i < 256; ++i) {
    const auto& colour = bgr.at<cv::Vec3b>(i);
    map[i] = {colour[2], colour[1], colour[0]};
  }
  return map;
}

ColourMap make_sequential() {
  cv::Mat ramp(1, 256, CV_8UC1), colours;
  for (int i = 0; i < 256; ++i) ramp.at<std::uint8_t>(i) = static_cast<std::uint8_t>(i);
  cv::applyColorMap(ramp, colours, cv::COLORMAP_VIRIDIS);
  return from_bgr(colours);
}

/// Straight lines in CIE Lab from a neutral middle to two ends of equal lightness and chroma: equal steps of
/// the value are equal steps for the eye, and neither sign stands out.
ColourMap make_diverging() {
  constexpr float kMiddleLightness = 93, kEndLightness = 38, kEndChroma = 58;
  constexpr float kBlueHue = 291, kRedHue = 30;  // degrees; all of it inside the gamut of sRGB
  cv::Mat lab(1, 256, CV_32FC3), bgr;
  for (int i = 0; i < 256; ++i) {
    const float position = (static_cast<float>(i) - 127.5f) / 127.5f, distance = std::abs(position);
    const float hue = (position < 0 ? kBlueHue : kRedHue) * std::numbers::pi_v<float> / 180;
    lab.at<cv::Vec3f>(i) = {kMiddleLightness + (kEndLightness - kMiddleLightness) * distance,
                            kEndChroma * distance * std::cos(hue), kEndChroma * distance * std::sin(hue)};
  }
  cv::cvtColor(lab, bgr, cv::COLOR_Lab2BGR);
  bgr.convertTo(bgr, CV_8UC3, 255);
  return from_bgr(bgr);
}

}  // namespace

const ColourMap& sequential_map() {
  static const ColourMap map = make_sequential();
  return map;
}

const ColourMap& diverging_map() {
  static const ColourMap map = make_diverging();
  return map;
}

}  // namespace dic

#include "draw/colour_map.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace dic::draw {
namespace {

Colours from_opencv(cv::ColormapTypes map) {
  cv::Mat ramp(1, 256, CV_8UC1), bgr;
  for (int i = 0; i < 256; ++i) ramp.at<std::uint8_t>(i) = static_cast<std::uint8_t>(i);
  cv::applyColorMap(ramp, bgr, map);
  Colours colours;
  for (int i = 0; i < 256; ++i) {
    const auto& colour = bgr.at<cv::Vec3b>(i);
    colours[i] = {colour[2], colour[1], colour[0]};
  }
  return colours;
}

Colours make_grey() {
  Colours colours;
  for (int i = 0; i < 256; ++i) colours[i].r = colours[i].g = colours[i].b = static_cast<std::uint8_t>(i);
  return colours;
}

/// Converts CIE Lab (D65) to sRGB. OpenCV's conversion would first build tables for a tenth of a second.
Colour from_lab(double lightness, double a, double b) {
  const double fy = (lightness + 16) / 116;
  const auto expand = [](double f) { return f > 6.0 / 29 ? f * f * f : 3 * (36.0 / 841) * (f - 4.0 / 29); };
  const double x = 0.95047 * expand(fy + a / 500), y = expand(fy), z = 1.08883 * expand(fy - b / 200);
  const auto encode = [](double linear) {
    const double c = std::clamp(linear, 0.0, 1.0);
    const double gamma = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
    return static_cast<std::uint8_t>(std::lround(255 * gamma));
  };
  return {encode(3.2406 * x - 1.5372 * y - 0.4986 * z), encode(-0.9689 * x + 1.8758 * y + 0.0415 * z),
          encode(0.0557 * x - 0.2040 * y + 1.0570 * z)};
}

/// Creates straight lines in Lab from a neutral middle to two ends of equal lightness and chroma: equal steps
/// of the value look equal, and neither sign stands out.
Colours make_blue_red() {
  constexpr double kMiddleLightness = 93, kEndLightness = 38, kEndChroma = 58;
  constexpr double kBlueHue = 291, kRedHue = 30;  // degrees; all colours are inside the gamut of sRGB
  Colours map;
  for (int i = 0; i < 256; ++i) {
    const double position = (i - 127.5) / 127.5, distance = std::abs(position);
    const double hue = (position < 0 ? kBlueHue : kRedHue) * std::numbers::pi / 180;
    map[i] = from_lab(kMiddleLightness + (kEndLightness - kMiddleLightness) * distance,
                      kEndChroma * distance * std::cos(hue), kEndChroma * distance * std::sin(hue));
  }
  return map;
}

}  // namespace

const Colours& colours_of(ColourMap map) {
  static const Colours viridis = from_opencv(cv::COLORMAP_VIRIDIS),
                       cividis = from_opencv(cv::COLORMAP_CIVIDIS),
                       inferno = from_opencv(cv::COLORMAP_INFERNO), blue_red = make_blue_red(),
                       grey = make_grey();
  switch (map) {
    case ColourMap::cividis:
      return cividis;
    case ColourMap::inferno:
      return inferno;
    case ColourMap::blue_red:
      return blue_red;
    case ColourMap::grey:
      return grey;
    default:
      return viridis;
  }
}

}  // namespace dic::draw

namespace dic {}  // namespace dic

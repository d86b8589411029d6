#pragma once

#include <cstdint>
#include <dic/draw.hpp>
#include <string>
#include <string_view>

namespace dic::figures {

enum class Format : std::uint8_t { png, pdf, svg };
std::string_view to_string(Format format);

/// Canvases for files of a format. resolution: pixels per unit of PNG files, and of images in the others,
/// whose unit is a point (1/72 inch). Without cairo PNG files are drawn by OpenCV, with a pixel per unit;
/// throws UsageError for the others. With a pixel per unit OpenCV draws also where the system has no fonts.
CanvasFactory canvases(Format format, double resolution = 1, const std::string& font = "sans-serif");

}  // namespace dic::figures

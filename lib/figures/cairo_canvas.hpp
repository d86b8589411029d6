#pragma once

#include <cstdint>
#include <dic/draw.hpp>
#include <dic/shared/enum_names.hpp>
#include <string>
#include <string_view>

namespace dic::figures {

enum class Format : std::uint8_t { png, pdf, svg };
}  // namespace dic::figures

namespace dic {

template <>
struct EnumNames<figures::Format> {
  static constexpr EnumName<figures::Format> table[] = {
      {figures::Format::png, "png"}, {figures::Format::pdf, "pdf"}, {figures::Format::svg, "svg"}};
};

}  // namespace dic

namespace dic::figures {

/// Canvases for files of a format. resolution: pixels per unit of PNG files, and of images in other formats,
/// whose unit is a point (1/72 inch). Without cairo, OpenCV draws PNG files with one pixel per unit, and
/// other formats throw UsageError. On systems without fonts, OpenCV draws PNG files with one pixel per unit.
CanvasFactory canvases(Format format, double resolution = 1, const std::string& font = "sans-serif");

}  // namespace dic::figures

#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/image_io.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Draws pictures of fields.
namespace dic {

struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
};

/// White paper to draw on; x to the right, y down. Lengths are in canvas units.
class DIC_API Canvas {
 public:
  struct Point {
    double x = 0, y = 0;
  };
  enum class Align : std::uint8_t { left, centre, right };

  virtual ~Canvas() = default;
  /// Resolution that an image on this canvas should have, px per canvas unit.
  virtual double resolution() const = 0;
  /// Draws joined lines with round ends.
  virtual void polyline(std::span<const Point> points, Colour colour, double width) = 0;
  /// Fills a convex area.
  virtual void polygon(std::span<const Point> points, Colour colour) = 0;
  virtual void disc(Point centre, double radius, Colour colour) = 0;
  /// Draws an image with its top-left corner at `corner`, at the resolution of the canvas.
  virtual void image(const RgbRows& pixels, Point corner) = 0;
  /// Draws UTF-8 text. at: left end, middle or right end of the base line, as `align` says. size: of the
  /// font.
  virtual void text(std::string_view words, Point at, double size, Colour colour, Align align) = 0;
  virtual double width_of(std::string_view words, double size) const = 0;
  /// Writes the file (temporary name, then rename); no other call may follow. Throws FileError.
  virtual void write(const std::filesystem::path& path) = 0;
};

/// Makes an empty canvas of this width and height, in canvas units.
using CanvasFactory = std::function<std::unique_ptr<Canvas>(double width, double height)>;
/// Canvases for PNG files, drawn by OpenCV with its simple font: 1 unit is 1 px.
DIC_API CanvasFactory png_canvases();

/// Colour maps of values; all but grey suit every kind of colour vision.
enum class ColourMap : std::uint8_t {
  automatic,  ///< blue_red for values on both sides of zero, else viridis
  viridis,    ///< dark blue to yellow
  cividis,    ///< dark blue to yellow, without green
  inferno,    ///< black to light yellow
  blue_red,   ///< blue - light grey - red, light grey at zero
  grey        ///< black to white
};
template <>
struct EnumNames<ColourMap> {
  static constexpr EnumName<ColourMap> table[] = {
      {ColourMap::automatic, "auto"},  {ColourMap::viridis, "viridis"},   {ColourMap::cividis, "cividis"},
      {ColourMap::inferno, "inferno"}, {ColourMap::blue_red, "blue-red"}, {ColourMap::grey, "grey"}};
};

struct ValueRange {
  double min = 0, max = 0;
};

/// Finds the range of the colours of many fields, in constant memory.
class RangeFinder {
 public:
  /// Adds values; ignores those that are not finite.
  DIC_API void add(std::span<const float> values);
  /// The 0.5th and 99.5th percentile of all values, or of a regular sample of more than 262,144 values;
  /// slightly wider if all values are equal. None without values.
  DIC_API std::optional<ValueRange> range() const;
  /// The smallest and the largest value; none without values.
  DIC_API std::optional<ValueRange> extremes() const;

 private:
  void halve_sample();

  std::vector<float> sample_;
  std::size_t stride_ = 1, skipped_ = 0;  ///< every stride-th value is kept
  std::optional<ValueRange> extremes_;
};

struct FigureOptions {
  std::string symbol = {};   ///< for example "u" or "ε_xx": the rest of a word after _ is a subscript
  std::string unit = {};     ///< "px", "mm", "" for strain
  std::string heading = {};  ///< text above the image; empty = none
  /// Values at the ends of the colour map, min < max; none = the RangeFinder's range of the values drawn.
  std::optional<ValueRange> range = {};
  /// Extremes to name in the legend; none = those of the values drawn.
  std::optional<ValueRange> extremes = {};
  ColourMap colour_map = ColourMap::automatic;
  bool smooth = true;     ///< true: bilinear between the points; false: a cell per point
  double opacity = 0.85;  ///< opacity of the colours over the image, 0 to 1
  bool outline = false;   ///< draw the outline of the region of interest in the current frame
  bool contours = false;  ///< draw lines of equal value, at the numbers of the legend
  bool vectors = false;   ///< draw arrows of the displacement
  bool scale_bar = false;
  double mm_per_px = 0;  ///< scale for the scale bar and arrows; 0 = show px
  double font = 13;      ///< size of the font, canvas units
  double width = 0;      ///< width of the figure, canvas units; 0 = suitable for a screen
};

/// Draws values of a field's nodes, [ny x nx], over the current image, with a legend of the colours. Each
/// point is drawn at its position in the current frame, (x + u, y + v), as a cell that reaches half-way to
/// its neighbours; missing points are left out. An empty `current` gives a white background. Throws
/// FileError, UsageError (sizes that do not match).
DIC_API void write_field_picture(const std::filesystem::path& path, ImageView current, const Field& field,
                                 std::span<const float> values, const FigureOptions& options,
                                 const CanvasFactory& canvases = png_canvases());

}  // namespace dic

#pragma once

#include <cstdint>
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

/// Pictures of fields.
namespace dic {

struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
};

/// White paper to draw on; x to the right, y down, in units of the canvas.
class Canvas {
 public:
  struct Point {
    double x = 0, y = 0;
  };
  enum class Align : std::uint8_t { left, centre, right };

  virtual ~Canvas() = default;
  /// Pixels per unit that an image on this canvas should have.
  virtual double resolution() const = 0;
  /// Joined lines with round ends.
  virtual void polyline(std::span<const Point> points, Colour colour, double width) = 0;
  /// A convex area.
  virtual void polygon(std::span<const Point> points, Colour colour) = 0;
  virtual void disc(Point centre, double radius, Colour colour) = 0;
  /// An image over the rectangle from `corner`, with the resolution of the canvas.
  virtual void image(const RgbRows& pixels, Point corner) = 0;
  /// at: on the base line, the left end, middle or right end. size: of the font. UTF-8.
  virtual void text(std::string_view words, Point at, double size, Colour colour, Align align) = 0;
  virtual double width_of(std::string_view words, double size) const = 0;
  /// Temporary name, then rename; nothing may follow. Throws FileError.
  virtual void write(const std::filesystem::path& path) = 0;
};

/// Makes an empty canvas of a width and height.
using CanvasFactory = std::function<std::unique_ptr<Canvas>(double width, double height)>;
/// Canvases for PNG files, drawn by OpenCV with its simple font: 1 unit is 1 px.
CanvasFactory png_canvases();

/// Colours of values; all but grey are safe for people of any colour vision.
enum class ColourMap : std::uint8_t {
  automatic,  ///< blue_red for values on both sides of zero, else viridis
  viridis,    ///< dark blue to yellow
  cividis,    ///< the same, without green
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
  /// Adds values; those that are not finite do not count.
  void add(std::span<const float> values);
  /// The 0.5th and 99.5th percentile, of a regular sample where there are more than 262,144 values; a
  /// little wider where all are the same. None without values.
  std::optional<ValueRange> range() const;
  /// The smallest and the largest of all values.
  std::optional<ValueRange> extremes() const;

 private:
  void halve_sample();

  std::vector<float> sample_;
  std::size_t stride_ = 1, skipped_ = 0;  ///< every stride-th value is kept
  std::optional<ValueRange> extremes_;
};

struct FigureOptions {
  std::string symbol = {};   ///< "u"; "ε_xx": the rest of a word after _ is a subscript
  std::string unit = {};     ///< "px", "mm", "" for strain
  std::string heading = {};  ///< above the image; empty = none
  /// Of the colours, min < max; none = as RangeFinder finds it in these values.
  std::optional<ValueRange> range = {};
  /// The true extremes, for the legend; none = those of these values.
  std::optional<ValueRange> extremes = {};
  ColourMap colour_map = ColourMap::automatic;
  bool smooth = true;     ///< bilinear between the points; else a cell per point
  double opacity = 0.85;  ///< of the colours over the image, 0 to 1
  bool outline = false;   ///< around the region of interest, where it is now
  bool contours = false;  ///< lines of equal value, at the numbers of the legend
  bool vectors = false;   ///< arrows of the displacement
  bool scale_bar = false;
  double mm_per_px = 0;  ///< for scale bar and arrows; 0 = px
  double font = 13;      ///< size of the font, units of the canvas
  double width = 0;      ///< of the figure, units of the canvas; 0 = as it suits a screen
};

/// Values of a field's nodes [ny x nx] over the current image, with the legend of the colours. Points are
/// drawn where they are in the current frame (x + u, y + v) as cells that reach half-way to their neighbours;
/// missing ones are left out. An empty image is white. Throws FileError, UsageError (sizes that do not fit).
void write_field_picture(const std::filesystem::path& path, ImageView current, const Field& field,
                         std::span<const float> values, const FigureOptions& options,
                         const CanvasFactory& canvases = png_canvases());

}  // namespace dic

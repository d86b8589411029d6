#pragma once

#include <dic/draw.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "draw/colour_scale.hpp"
#include "draw/ticks.hpp"

namespace dic::draw {

// Room for a legend, in sizes of its font.
inline constexpr double kLegendWidth = 6.4, kLeastLegend = 14;  ///< width and least height beside the image
inline constexpr double kLegendHeight = 3.8;                    ///< height below the image

/// The colour bar with numbers, symbol and unit of the quantity, and its true extremes.
class Legend {
 public:
  Legend(Canvas& canvas, const ColourScale& scale, const cv::Rect2d& box, bool is_below,
         const FigureOptions& options);

  /// extremes: empty if there is no value.
  void draw(std::optional<ValueRange> extremes) const;
  /// The values that have a number.
  std::vector<double> ticks() const;

 private:
  void draw_beside(std::optional<ValueRange> extremes) const;
  void draw_below(std::optional<ValueRange> extremes) const;
  void draw_bar(const cv::Rect2d& bar, std::optional<ValueRange> extremes) const;
  void draw_end(Canvas::Point a, Canvas::Point tip, Canvas::Point b, double value) const;
  double fraction(double value) const;
  std::string extreme(const char* name, double value) const;
  void text(const std::string& words, Canvas::Point at, double size, Canvas::Align align) const;
  /// Draws symbol and unit, such as "u [px]"; the part of the symbol after _ is a subscript. size: relative
  /// to the font. Returns the width; draws nothing if `at` is null.
  double title(const Canvas::Point* at, double size = 1) const;

  Canvas& canvas_;
  const ColourScale& scale_;
  cv::Rect2d box_;
  bool is_below_;
  const FigureOptions& options_;
  double font_;
  Ticks ticks_;
};

}  // namespace dic::draw

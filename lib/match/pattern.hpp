#pragma once

#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <optional>

#include "core/parallel.hpp"
#include "match/quintic_spline.hpp"

namespace dic::match {

/// A template as the user gave it.
struct Template {
  Image values;     ///< grey levels, f64
  Image mask;       ///< u8, 1 = pixel counts
  ScalarType type;  ///< type of the original image
  int bit_depth;    ///< bit depth of the original image
  double min, max;  ///< range of the pixels that count
};

/// Makes a template; `mask` may be empty. Throws UsageError if `values` is empty or holds NaN, the size of
/// `mask` differs, or no pixel counts.
Template make_template(ImageView values, ImageView mask);

/// A template rotated and scaled onto the pixel grid of an image, ready for the search.
struct Pattern {
  Image values;  ///< grey levels, f64
  Image mask;    ///< u8, 1 = element counts
  int origin_x = 0,
      origin_y = 0;  ///< first element, relative to the position of the template's top-left pixel, px
  double center_x = 0, center_y = 0;  ///< centre of the template, relative to the same position, px
  std::int64_t elements = 0;          ///< number of elements that count

  bool is_masked() const { return elements < static_cast<std::int64_t>(mask.width()) * mask.height(); }
};

/// Rotates one template, scaled once, by any angle. The threads must outlive it.
class TemplateWarp {
 public:
  TemplateWarp(const Template& source, double scale, core::ThreadPool& pool);
  /// The pattern at an angle; nothing if it exceeds the maximum size, or if fewer than two of its pixels
  /// count.
  std::optional<Pattern> at(double rotation_deg, int max_width, int max_height) const;

 private:
  bool counts(double x, double y) const;

  const Template& source_;
  double scale_;
  core::ThreadPool& pool_;
  QuinticSpline spline_;
};

/// Converts the pattern to the element type of the image that it is compared with. Grey levels that the type
/// cannot hold are stretched to its range for zncc (gain and offset) and ncc (gain), which are invariant to
/// it, and rounded for ssd.
Image to_elements(const Pattern& pattern, ScalarType type, Criterion method);

}  // namespace dic::match

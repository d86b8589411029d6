#pragma once

#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <optional>

#include "core/parallel.hpp"
#include "match/quintic_spline.hpp"

namespace dic {

/// A template as the user gave it.
struct Template {
  Image values;     ///< f64
  Image mask;       ///< u8, 1 = counts
  ScalarType type;  ///< of the image it came from
  int bit_depth;    ///< likewise
  double min, max;  ///< over the pixels that count
};

/// Throws UsageError where it is empty or holds NaN, `mask` has another size, or no pixel counts. `mask` may
/// be empty.
Template make_template(ImageView values, ImageView mask);

/// A template rotated and scaled onto the pixel grid of an image, ready for the search.
struct Pattern {
  Image values;  ///< f64
  Image mask;    ///< u8, 1 = counts
  int origin_x = 0,
      origin_y = 0;  ///< first element, relative to where the template's top-left pixel lands, px
  double center_x = 0, center_y = 0;  ///< the template's centre, relative likewise
  std::int64_t elements = 0;          ///< that count

  bool is_masked() const { return elements < static_cast<std::int64_t>(mask.width()) * mask.height(); }
};

/// Rotates one template, scaled once, by any angle.
class TemplateWarp {
 public:
  TemplateWarp(const Template& source, double scale, ThreadPool& pool);
  /// The pattern at an angle; nothing where it exceeds the maximum size, or fewer than two of its pixels
  /// count.
  std::optional<Pattern> at(double rotation_deg, int max_width, int max_height) const;

 private:
  bool counts(double x, double y) const;

  const Template& source_;
  double scale_;
  QuinticSpline spline_;
};

/// The pattern in the element type of the image that it is compared with. Grey levels that the type cannot
/// hold are stretched to its range for zncc (gain and offset) and ncc (gain), which do not see it, and
/// rounded for ssd.
Image to_elements(const Pattern& pattern, ScalarType type, Criterion method);

}  // namespace dic

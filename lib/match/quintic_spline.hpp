#pragma once

#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "match/pose_kernels.hpp"
#include "refine/image.hpp"

namespace dic::match {

/// An image as a prefiltered quintic B-spline, which passes through the pixels and is smooth in between.
class QuinticSpline {
 public:
  QuinticSpline(ImageView image, core::ThreadPool& pool);

  /// Value at (x, y), which may lie up to 1 px outside the outermost pixel centres.
  double at(double x, double y) const;

  /// Values and gradients at (x + i, y + j), i < width, j < height, row-major.
  struct Block {
    std::vector<double> value, dx, dy;
  };
  void block(double x, double y, int width, int height, Block& out) const;

  /// The coefficients for `sample`.
  SampleImage samples() const;

 private:
  double offset_;  ///< grey level of a pixel; without it floats lose the detail of bright images
  refine::PaddedImage coefficients_;  ///< coefficients of the image minus the offset
};

}  // namespace dic::match

#pragma once

#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "synth/specimen.hpp"
#include "synth/speckle.hpp"

namespace dic::synth {

/// The map from the sum of blobs at a place to its brightness: -1 at middle - half, 1 at middle + half.
/// contrast: 0 = linear; the larger, the more the speckle resembles paint, with the slope contrast /
/// tanh(contrast) in the middle.
struct Tone {
  double middle = 0, half = 1, contrast = 0;

  double operator()(double sum) const {
    const double linear = (sum - middle) / half;
    return contrast == 0 ? linear : std::tanh(contrast * linear) / std::tanh(contrast);
  }
};

/// The speckle of a specimen, and how it is integrated.
struct Print {
  SpeckleSettings speckle;
  Tone tone;
  int nodes = 3;  ///< nodes of the integration per pixel and axis: 3 or 5
};

/// Means over the area of each pixel of an image, [y, x].
struct PixelMeans {
  std::vector<double> texture;  ///< brightness where the specimen is seen, 0 beside it
  std::vector<double> share;    ///< share of the pixel that shows the specimen
};

/// Integrates the speckle of a specimen over the pixels of a camera: Gauss-Legendre nodes, each along its
/// exact ray.
PixelMeans integrate_speckle(const Specimen& specimen, const ViewingCamera& camera, const Print& print,
                             core::ThreadPool& pool);

}  // namespace dic::synth

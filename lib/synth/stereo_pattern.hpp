#pragma once

#include <vector>

#include "core/parallel.hpp"
#include "synth/specimen.hpp"
#include "synth/speckle.hpp"

namespace dic::synth {

/// Means over the area of each pixel of an image, [y, x].
struct PixelMeans {
  std::vector<double> texture;  ///< sum of blobs where the specimen is seen, 0 beside it
  std::vector<double> share;    ///< share of the pixel that shows the specimen
};

/// Integrates the speckle of a specimen over the pixels of a camera: Gauss-Legendre nodes, each along its
/// exact ray. nodes: per pixel and axis, 3 or 5.
PixelMeans integrate_speckle(const Specimen& specimen, const ViewingCamera& camera,
                             const SpeckleSettings& speckle, int nodes, core::ThreadPool& pool);

}  // namespace dic::synth

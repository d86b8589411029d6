#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <vector>

namespace dic {

/// A displacement and its gradient, from a coarse field.
struct CoarseShift {
  double u = 0, v = 0;  ///< px
  double ux = 0, uy = 0, vx = 0, vy = 0;
};

/// Displacements on a lattice of a reduced picture, every node filled.
class CoarseField {
 public:
  /// False where nothing was recognized: `at` is then zero everywhere.
  bool valid() const { return confidence > 0; }
  /// Displacement at a pixel of the full picture, bilinear between nodes, constant beyond the lattice.
  CoarseShift at(double x, double y) const;

  double confidence = 0;  ///< share of nodes that were recognized and agree with their neighbours
  int reduction = 1;      ///< px of the full picture per px of the reduced one
  int x0 = 0, y0 = 0, spacing = 1, nx = 0, ny = 0;  ///< lattice, px of the reduced picture
  std::vector<float> u, v;                          ///< [ny x nx], px of the reduced picture
};

/// Coarse-to-fine search for motions of any size: all of the most reduced picture is searched, then every
/// finer level corrects by a few px (the pyramid scheme of Bouguet 2001, with ZNCC instead of gradients).
///
/// Reduced pictures are 8 bit, stretched to their own range: ZNCC does not mind, and it is fast for every
/// type.
class CoarseSearch {
 public:
  CoarseSearch(ImageView reference, ImageView roi);
  /// Displacement field from the reference to `current`.
  CoarseField run(Correlator& correlator, ImageView current) const;

 private:
  CoarseField search_top(Correlator& correlator, const Image& current, int level) const;
  CoarseField search_finer(Correlator& correlator, const Image& current, int level,
                           const CoarseField& coarser) const;

  std::vector<Image> reference_, roi_;  // by level, 0 = full size; roi_ is empty without ROI
};

}  // namespace dic

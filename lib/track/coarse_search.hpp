#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/coarse_field.hpp>
#include <optional>
#include <span>
#include <vector>

#include "track/integer_search.hpp"
#include "track/subset_shapes.hpp"

namespace dic::track {

/// Displacements on a lattice of a reduced image, every node filled.
class CoarseField : public FieldLattice {
 public:
  /// False where nothing was recognized: `at` is then zero everywhere.
  bool valid() const { return confidence > 0; }
  /// Displacement at a pixel of the full image, bilinear between nodes, constant beyond the lattice.
  CoarseShift at(double x, double y) const;

  double confidence = 0;    ///< share of nodes that were recognized and agree with their neighbours
  std::vector<float> u, v;  ///< [ny x nx], px of the reduced image
};

/// Where the search looks for subsets in one level of the pyramid: a lattice of nodes.
struct CoarseLattice {
  int level;
  CoarseField field;  ///< of zeros
  std::vector<int> x, y;
  SubsetShapes shapes;
  std::vector<std::int64_t> searched;  ///< nodes with enough of their subset inside image and ROI
};

/// Finds subsets of one level of the reference's pyramid in that of the current image: each
/// backend does it with its own means. Pyramids are 8 bit, with the image stretched to its own range: this
/// does not change ZNCC, and 8-bit search is the fastest.
class PyramidSearch {
 public:
  virtual ~PyramidSearch() = default;
  /// Searches the nodes `which` within +-range px of their predictions (same order), results in that order.
  virtual std::vector<FoundShift> around(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                                         std::span<const Prediction> predictions, int range) = 0;
  /// Searches the whole level for the nodes lattice.searched, results in that order.
  virtual std::vector<FoundShift> everywhere(const CoarseLattice& lattice) = 0;
};

/// Coarse-to-fine search for motions of any size: all of the most reduced image is searched, then every
/// finer level corrects by a few px (the pyramid scheme of Bouguet 2001, with ZNCC instead of gradients).
class CoarseSearch {
 public:
  /// For references of width x height px. roi: u8, inside where not zero; may be empty. pool: lives longer.
  CoarseSearch(int width, int height, ImageView roi, ThreadPool& pool);

  /// Of the pyramids, level 0 being the full size.
  int levels() const { return levels_; }
  /// The ROI in a level, u8, inside where not zero; empty where nodes lie in a rectangle anyway.
  ImageView roi(int level) const { return roi_.empty() ? ImageView{} : roi_[level].view(); }
  /// False where level 0 is not searched here, but by the points themselves.
  bool uses_full_size() const { return levels_ == 1 || may_search_whole(0); }

  /// Displacement field from the reference to the current image.
  CoarseField run(PyramidSearch& search);

 private:
  using Lattices = std::vector<std::optional<CoarseLattice>>;

  int most_top_nodes(int level) const;
  bool may_search_whole(int level) const;
  CoarseField find_top(PyramidSearch& search);
  CoarseField search_whole(PyramidSearch& search, int level);
  CoarseField search_finer(PyramidSearch& search, int level, const CoarseField& coarser);
  Roi::Rect box(int level) const;
  const CoarseLattice& lattice(Lattices& known, int level, int most_nodes);

  ThreadPool& pool_;
  int width_, height_, levels_ = 1;
  Roi::Rect box_;           ///< of the ROI
  std::vector<Image> roi_;  ///< by level; empty where the ROI is a rectangle
  Lattices whole_, finer_;  ///< by level; made when first needed
};

}  // namespace dic::track

#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/shared/coarse_field.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "track/integer_search.hpp"
#include "track/possible_places.hpp"
#include "track/subset_shapes.hpp"

namespace dic::track {

/// Displacements on a lattice of a reduced image, every node filled.
class CoarseField : public FieldLattice {
 public:
  /// False if nothing was recognized: `at` is then zero everywhere.
  bool valid() const { return confidence > 0; }
  /// Displacement at a pixel of the full image, bilinear between nodes, constant beyond the lattice.
  CoarseShift at(double x, double y) const;

  double confidence = 0;    ///< share of nodes that were recognized and agree with their neighbours
  std::vector<float> u, v;  ///< [ny x nx], px of the reduced image
};

/// A lattice of nodes at which the search looks for subsets in one level of the pyramid.
struct CoarseLattice {
  int level;
  CoarseField field;  ///< a field of zeros, to be filled in
  std::vector<int> x, y;
  SubsetShapes shapes;
  std::vector<std::int64_t> searched;  ///< nodes with enough of their subset inside image and ROI
};

/// Finds subsets of one level of the reference's pyramid in the same level of the current image. Each backend
/// implements it. Pyramids are 8 bit, with the image stretched to its own range: this does not change ZNCC,
/// and 8-bit search is the fastest.
class PyramidSearch {
 public:
  virtual ~PyramidSearch() = default;
  /// Searches the nodes `which` within +-range px of their predictions (same order), results in that order.
  virtual std::vector<FoundShift> around(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                                         std::span<const Prediction> predictions, int range) = 0;
  /// Searches the whole level for the nodes lattice.searched; results are in that order.
  virtual std::vector<FoundShift> everywhere(const CoarseLattice& lattice) = 0;
};

/// Coarse-to-fine search for motions of any size: all of the most reduced image is searched, then every
/// finer level corrects by a few px (the pyramid scheme of Bouguet 2001, with ZNCC instead of gradients).
class CoarseSearch {
 public:
  /// Prepares the search for references of width x height px. roi: u8, inside where not zero; may be empty.
  /// pool: must outlive this object.
  CoarseSearch(int width, int height, ImageView roi, core::ThreadPool& pool);

  /// Number of levels of the pyramids; level 0 has the full size.
  int levels() const { return levels_; }
  /// The ROI in a level, u8, inside where not zero; empty if the ROI is a rectangle.
  ImageView roi(int level) const { return roi_.empty() ? ImageView{} : roi_[level].view(); }
  /// False if level 0 is searched only by the points themselves, and not here.
  bool uses_full_size() const { return levels_ == 1 || may_search_whole(0); }
  /// Looks only for motions of at most this many px along each axis; none = motions of any size.
  void limit_motion(std::optional<int> largest) { largest_motion_ = largest; }
  /// Looks near these places first, and elsewhere only if too little is found there. Empty: everywhere.
  void look_near(PossiblePlaces places) { places_ = std::move(places); }

  /// Finds the displacement field from the reference to the current image.
  CoarseField run(PyramidSearch& search);

 private:
  using Lattices = std::vector<std::optional<CoarseLattice>>;

  int most_top_nodes(int level) const;
  bool may_search_whole(int level) const;
  using FindNodes = std::vector<FoundShift> (CoarseSearch::*)(PyramidSearch& search,
                                                              const CoarseLattice& nodes) const;

  CoarseField find_top(PyramidSearch& search);
  CoarseField find_top(PyramidSearch& search, FindNodes find);
  CoarseField search_whole(PyramidSearch& search, int level, FindNodes find);
  std::vector<FoundShift> everywhere(PyramidSearch& search, const CoarseLattice& nodes) const;
  std::vector<FoundShift> near_places(PyramidSearch& search, const CoarseLattice& nodes) const;
  CoarseField search_finer(PyramidSearch& search, int level, const CoarseField& coarser);
  Roi::Rect box(int level) const;
  const CoarseLattice& lattice(Lattices& known, int level, int most_nodes);

  core::ThreadPool& pool_;
  int width_, height_, levels_ = 1;
  std::optional<int> largest_motion_;
  PossiblePlaces places_;
  Roi::Rect box_;           ///< bounding box of the ROI
  std::vector<Image> roi_;  ///< the ROI by level; empty if it is a rectangle
  Lattices whole_, finer_;  ///< lattices by level, made when first needed
};

}  // namespace dic::track

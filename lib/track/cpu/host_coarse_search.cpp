#include "track/cpu/host_coarse_search.hpp"

#include "analysis/image_pyramid.hpp"

namespace dic::track {
namespace {

/// The levels of the pyramid; level 0 is empty if it is not searched.
std::vector<Image> levels_of(const CoarseSearch& search, ImageView image, core::ThreadPool& pool) {
  std::vector<Image> levels = analysis::pyramid(analysis::stretched(image, pool), search.levels(), pool);
  if (!search.uses_full_size()) levels.front() = Image();
  return levels;
}

class HostPyramids final : public PyramidSearch {
 public:
  HostPyramids(const CoarseSearch& search, const std::vector<Image>& reference, ImageView current,
               Correlator& correlator, core::ThreadPool& pool)
      : search_(search),
        reference_(reference),
        current_(levels_of(search, current, pool)),
        correlator_(correlator),
        pool_(pool) {}

  std::vector<FoundShift> around(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                                 std::span<const Prediction> predictions, int range) override {
    return of(lattice).around(correlator_, current_[lattice.level], which, predictions, range);
  }
  std::vector<FoundShift> everywhere(const CoarseLattice& lattice) override {
    return of(lattice).everywhere(correlator_, current_[lattice.level], lattice.searched);
  }

 private:
  IntegerSearch of(const CoarseLattice& lattice) const {
    return {reference_[lattice.level], search_.roi(lattice.level), lattice.shapes, pool_};
  }

  const CoarseSearch& search_;
  const std::vector<Image>& reference_;
  std::vector<Image> current_;
  Correlator& correlator_;
  core::ThreadPool& pool_;
};

}  // namespace

HostCoarseSearch::HostCoarseSearch(ImageView reference, ImageView roi, core::ThreadPool& pool)
    : pool_(pool),
      search_(reference.width, reference.height, roi, pool),
      reference_(levels_of(search_, reference, pool)) {}

CoarseField HostCoarseSearch::run(Correlator& correlator, ImageView current) {
  HostPyramids pyramids(search_, reference_, current, correlator, pool_);
  return search_.run(pyramids);
}

}  // namespace dic::track

#pragma once

#include <dic/correlate.hpp>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "track/coarse_search.hpp"

namespace dic::track {

/// The coarse-to-fine search of one reference on the CPU.
class HostCoarseSearch {
 public:
  /// roi: u8, may be empty.
  HostCoarseSearch(ImageView reference, ImageView roi, core::ThreadPool& pool);

  /// See CoarseSearch::limit_motion.
  void limit_motion(std::optional<int> largest) { search_.limit_motion(largest); }
  /// See CoarseSearch::look_near.
  void look_near(PossiblePlaces places) { search_.look_near(std::move(places)); }

  CoarseField run(Correlator& correlator, ImageView current);

 private:
  core::ThreadPool& pool_;
  CoarseSearch search_;
  std::vector<Image> reference_;  ///< pyramid of the reference, by level
};

}  // namespace dic::track

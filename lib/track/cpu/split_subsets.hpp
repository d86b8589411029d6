#pragma once

#include <cstdint>
#include <dic/shared/split_rules.hpp>
#include <stop_token>
#include <vector>

#include "track/cpu/frame_points.hpp"

namespace dic::track {

/// Measures doubtful and lost points again with parts of their subsets (<dic/shared/split_rules.hpp>), on the
/// CPU, for one frame.
class SplitSubsets {
 public:
  /// results: by point; receives the new ones.
  SplitSubsets(const PointNodes& points, const HostReference& reference, int step,
               std::span<RefinedPoint> results);

  void run(const std::stop_token& stop);

 private:
  using PointList = std::vector<std::int64_t>;
  /// A measurement with a part of a subset.
  struct Attempt {
    CountedPart part;
    ShapeParameters start;
  };

  ResidualLevel level_of_tile(int tile) const;
  /// Finds the level around every tile: the medians of the levels of up to nine tiles.
  void find_levels();
  ResidualLevel level(std::int64_t i) const;
  bool doubtful(std::int64_t i) const;
  /// The first trusted point in a direction; -1: none.
  std::int64_t trusted_towards(std::int64_t i, Direction towards) const;
  std::vector<Attempt> attempts(int round) const;
  void measure(const std::vector<Attempt>& attempts, int round, const std::stop_token& stop);
  /// Gives up a doubtful point, unless all trusted points around it predict its value.
  void give_up_contradicted(std::int64_t i);

  const PointNodes& points_;
  const HostReference& reference_;
  std::span<RefinedPoint> results_;
  const FramePoints frame_;
  const int radius_, step_;
  const Tiles tiles_;
  std::vector<ResidualLevel> levels_;
  std::vector<std::uint8_t> trusted_;  ///< flags by point: trusted before anything is measured again
  PointList open_;                     ///< points that are still to be measured again
};

}  // namespace dic::track

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
    int direction;  ///< see track::direction
  };
  /// Attempts of one round, of each point adjacent, and their results.
  struct Measured {
    std::vector<Attempt> attempts;
    std::vector<RefinedPoint> results;

    std::int64_t point(std::size_t k) const { return attempts[k].part.part.point; }
  };

  ResidualLevel level_of_tile(int tile) const;
  /// Finds the level around every tile: the medians of the levels of up to nine tiles.
  void find_levels();
  ResidualLevel level(std::int64_t i) const;
  bool doubtful(std::int64_t i) const;
  /// The first trusted point in a direction; -1: none.
  std::int64_t trusted_towards(std::int64_t i, Direction towards) const;
  std::vector<Attempt> attempts(int round) const;
  Measured measured(int round, const std::stop_token& stop) const;
  /// Finds the directions that the smallest parts refute.
  void probe(const std::stop_token& stop);
  /// The accepted measurement with the least residual becomes the result of its point, which is closed. A
  /// point without attempts in the first round is closed, too.
  void take(const Measured& measured, int round);
  bool is_accepted(const Measured& measured, std::size_t k) const;
  /// Gives up a doubtful point, unless all trusted points around it predict its value.
  void give_up_contradicted(std::int64_t i);

  const PointNodes& points_;
  const HostReference& reference_;
  std::span<RefinedPoint> results_;
  const FramePoints frame_;
  const int radius_, step_;
  const Tiles tiles_;
  std::vector<ResidualLevel> levels_;
  std::vector<std::uint8_t> trusted_;   ///< flags by point: trusted before anything is measured again
  std::vector<std::uint16_t> refuted_;  ///< by point: bit k is set if direction k is refuted
  PointList open_;                      ///< points that are still to be measured again
};

}  // namespace dic::track

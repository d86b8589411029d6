#pragma once

#include <cstdint>
#include <dic/shared/trust_rules.hpp>
#include <vector>

#include "track/cpu/frame_points.hpp"

namespace dic::track {

/// Gives up measured points that are matches by chance (<dic/shared/trust_rules.hpp>), on the CPU, for one
/// frame.
class ChanceMatches {
 public:
  /// alternatives: see ReferenceAnalysis. results: by point; receives the new statuses.
  ChanceMatches(const PointNodes& points, const HostReference& reference, std::span<const float> alternatives,
                int step, std::span<RefinedPoint> results);

  void reject();

 private:
  std::uint8_t links(std::int64_t i) const;
  void find_groups();
  std::int64_t root(std::int64_t i) const;
  FrameLevel level() const;
  void give_up_chance();
  void find_ambiguous();

  const PointNodes& points_;
  const HostReference& reference_;
  const std::span<const float> alternatives_;
  std::span<RefinedPoint> results_;
  const FramePoints frame_;
  const std::int64_t large_;
  std::vector<std::int64_t>
      parent_;  ///< a group member of lower index; the first member of a group has itself
  std::vector<std::int64_t> members_;  ///< number of members, stored at the first member of a group
  std::vector<std::uint8_t> contested_;
};

}  // namespace dic::track

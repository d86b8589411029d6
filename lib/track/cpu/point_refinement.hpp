#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <functional>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

#include "track/algorithm/point_refinement.hpp"
#include "track/cpu/host_reference.hpp"
#include "track/cpu/start_search.hpp"
#include "track/feature_starts.hpp"

namespace dic::track {

/// Refinements to be done, each of another point.
struct RefinementAttempts {
  std::vector<std::int64_t> points;
  RawVector<ShapeParameters> starts;  ///< empty: those that were searched
};

/// What a refinement works in, kept from frame to frame: taking so much memory anew costs more than filling
/// it.
struct RefinementMemory {
  RawVector<RefinedPoint> results;
  RefinementAttempts attempts;
  RawVector<ShapeParameters> starts;         ///< of some attempts
  RawVector<RefinedPoint> refined;           ///< the same
  std::vector<std::uint8_t> is_fresh, seen;  ///< by point
};

/// The operations of the refinement (algorithm/point_refinement.hpp) on the CPU, for one frame.
class PointRefinement {
 public:
  static constexpr bool kSpeculative = false;

  /// check_stop throws where `stop` was requested.
  PointRefinement(const PointNodes& points, const HostReference& reference, ImageView current,
                  std::span<const Start> starts, RefinementMemory& memory, std::stop_token stop,
                  std::function<void()> check_stop);

  void start_over();
  void refine_starts(int step);
  void begin_recovery() { find_front(); }
  int recover(int most_waves);
  void count_remaining(int) {}
  RemainingPoints remaining() const;
  void drop_islands();
  void restore_islands() {}
  std::int64_t lost() const { return std::ssize(find_lost().points); }
  std::int64_t lost_in_view() const { return find_lost().in_view; }
  bool refine_from_features(Stretch stretch);

 private:
  using PointList = std::vector<std::int64_t>;

  RefinedPoint unrefined(std::int64_t i) const;
  /// Not measured, and its start scores from `least` to below `below`.
  bool waits(std::int64_t i, float least, float below) const;
  /// Makes the attempts in memory, and keeps what is better than what is known.
  void refine();
  std::span<const ShapeParameters> starts_of_attempts(std::size_t first, std::size_t count) const;
  void find_front();
  LostPoints find_lost() const;

  const PointNodes& points_;
  const HostReference& reference_;
  const ImageView current_;
  std::span<const Start> starts_;
  std::stop_token stop_;
  std::function<void()> check_stop_;
  RefinementMemory& memory_;
  RawVector<RefinedPoint>& results_;
  float tried_ = std::numeric_limits<float>::infinity();  ///< starts of this score and above were tried
  PointList fresh_;                                       ///< points that the last refinement measured
};

}  // namespace dic::track

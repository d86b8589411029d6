#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "track/algorithm/point_refinement.hpp"
#include "track/cpu/host_reference.hpp"
#include "track/cpu/start_search.hpp"
#include "track/feature_starts.hpp"

namespace dic::track {

/// Refinements to be done, one per point.
struct RefinementAttempts {
  std::vector<std::int64_t> points;
  core::RawVector<ShapeParameters> starts;  ///< empty: the starts that the search found
};

/// Working memory of a refinement, kept from frame to frame because allocating it costs more than filling it.
struct RefinementMemory {
  core::RawVector<RefinedPoint> results;
  RefinementAttempts attempts;
  core::RawVector<ShapeParameters> starts;             ///< starts of a batch of attempts
  core::RawVector<RefinedPoint> refined;               ///< results of a batch of attempts
  std::vector<std::uint8_t> is_fresh, seen, has_left;  ///< flags by point
};

/// The operations of the refinement (algorithm/point_refinement.hpp) on the CPU, for one frame.
class PointRefinement {
 public:
  static constexpr bool kSpeculative = false;

  /// check_stop: throws if `stop` was requested.
  PointRefinement(const PointNodes& points, const HostReference& reference, ImageView current,
                  std::span<const Start> starts, RefinementMemory& memory, std::stop_token stop,
                  std::function<void()> check_stop, int step);

  void start_over();
  void refine_starts(int step);
  void begin_recovery() { find_front(); }
  int recover(int most_waves);
  /// Gives up the points that have certainly left the image.
  void count_remaining(int);
  RemainingPoints remaining() const;
  void drop_islands();
  void restore_islands() {}
  std::int64_t lost() const { return std::ssize(find_lost().points); }
  std::int64_t lost_in_view() const { return find_lost().in_view; }
  bool refine_from_features(Stretch stretch);

 private:
  using PointList = std::vector<std::int64_t>;

  RefinedPoint unrefined(std::int64_t i) const;
  /// True if the point is neither measured nor given up as flat.
  bool is_lost(std::int64_t i) const;
  /// True if the point is lost, has not left the image, and the score of its start is in [least, below).
  bool waits(std::int64_t i, float least, float below) const;
  /// Gives up the points that show mere noise, as flat, if that can be told.
  void give_up_noise();
  /// Makes the attempts in memory_, and keeps results that are better than the known ones.
  void refine();
  std::span<const ShapeParameters> starts_of_attempts(std::size_t first, std::size_t count) const;
  void find_front();
  bool leads_to_stretched() const;
  LostPoints find_lost() const;

  const PointNodes& points_;
  const HostReference& reference_;
  const ImageView current_;
  std::span<const Start> starts_;
  std::stop_token stop_;
  std::function<void()> check_stop_;
  const int step_;  ///< distance of the points, px
  RefinementMemory& memory_;
  core::RawVector<RefinedPoint>& results_;
  float tried_ = std::numeric_limits<float>::infinity();  ///< starts of this score and above were tried
  PointList fresh_;                                       ///< points that the last refinement measured
  std::optional<features::MotionFinder> finder_;          ///< made when features are first needed
};

}  // namespace dic::track

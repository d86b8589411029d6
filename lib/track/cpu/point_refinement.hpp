#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <functional>
#include <limits>
#include <stop_token>
#include <vector>

#include "track/algorithm/point_refinement.hpp"
#include "track/cpu/host_reference.hpp"
#include "track/cpu/start_search.hpp"
#include "track/feature_starts.hpp"

namespace dic::track {

/// The operations of the refinement (algorithm/point_refinement.hpp) on the CPU, for one frame.
class PointRefinement {
 public:
  static constexpr bool kSpeculative = false;

  /// check_stop throws where `stop` was requested.
  PointRefinement(const Points& points, const HostReference& reference, ImageView current,
                  const std::vector<Start>& starts, std::stop_token stop, std::function<void()> check_stop);

  void start_over();
  void refine_starts(int step);
  void begin_recovery() { front_ = front(); }
  int recover(int most_waves);
  void count_remaining(int) {}
  RemainingPoints remaining() const;
  void drop_islands();
  void restore_islands() {}
  std::int64_t lost() const { return std::ssize(find_lost().points); }
  std::int64_t lost_in_view() const { return find_lost().in_view; }
  bool refine_from_features(Stretch stretch);

  /// By point.
  std::vector<RefinedPoint> take_results() { return std::move(results_); }

 private:
  using PointList = std::vector<std::int64_t>;
  /// Refinements to be done, each of another point.
  struct Attempts {
    PointList points;
    std::vector<ShapeParameters> starts;
    void add(std::int64_t point, const ShapeParameters& start) {
      points.push_back(point);
      starts.push_back(start);
    }
  };

  RefinedPoint unrefined(std::int64_t i) const;
  /// Not measured, and its start scores from `least` to below `below`.
  bool waits(std::int64_t i, float least, float below) const;
  void refine(const Attempts& attempts);
  Attempts front() const;
  LostPoints find_lost() const;

  const Points& points_;
  const HostReference& reference_;
  const ImageView current_;
  const std::vector<Start>& starts_;
  std::stop_token stop_;
  std::function<void()> check_stop_;
  std::vector<RefinedPoint> results_;
  float tried_ = std::numeric_limits<float>::infinity();  ///< starts of this score and above were tried
  PointList fresh_;                                       ///< points that the last refinement measured
  Attempts front_;
};

}  // namespace dic::track

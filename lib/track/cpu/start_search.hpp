#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/refine.hpp>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "track/algorithm/start_search.hpp"
#include "track/cpu/host_reference.hpp"

namespace dic::track {

/// The shape from which the refinement of a point starts.
struct Start {
  ShapeParameters shape;
  float score = -1;  ///< ZNCC at whole pixels; -1: nothing was found
};

/// The operations of the search for starts (algorithm/start_search.hpp) on the CPU, for one frame.
class StartSearch {
 public:
  static constexpr bool kSpeculative = false;

  /// range: see TrackOptions::search. check_stop: throws if the measurement was cancelled. variants: collects
  /// the correlation variants that ran. results: of the refinement, by point.
  StartSearch(const PointNodes& points, HostReference& reference, ImageView current, Correlator& correlator,
              std::optional<int> range, std::function<void()> check_stop, std::set<std::string>& variants,
              const core::RawVector<RefinedPoint>& results);

  bool automatic() const { return !range_; }
  bool has_last() const { return !reference_.last.empty(); }
  void predict_from_last();
  void follow_common_motion();
  void predict_from_pyramid() { predict_from_pyramid(unpredicted_, starts_); }
  void search_all() { search(trackable_, starts_); }
  void search_again(bool all);
  void leave_out_measured() { leaves_out_measured_ = true; }
  std::int64_t trackable() const { return std::ssize(trackable_); }
  std::int64_t unpredicted() const { return missed(unpredicted_); }
  std::int64_t lost() const { return missed(lost_points()); }

  /// Starts, by point.
  std::span<const Start> starts() const { return starts_; }

 private:
  using PointList = std::vector<std::int64_t>;

  void predict_from_pyramid(std::span<const std::int64_t> which, std::span<Start> starts);
  void search(PointList which, std::span<Start> starts);
  PointList lost_points() const;
  /// The points that tell the common motion.
  PointList sampled() const;
  /// Number of these points, without those that are excused.
  std::int64_t missed(const PointList& missing) const;
  /// Calls body(which[k], k) for all k, by all threads.
  template <typename Body>
  void for_each_of(std::span<const std::int64_t> which, const Body& body) const;

  const PointNodes& points_;
  HostReference& reference_;
  const ImageView current_;
  Correlator& correlator_;
  const std::optional<int> range_;
  std::function<void()> check_stop_;
  std::set<std::string>& variants_;
  const core::RawVector<RefinedPoint>& results_;
  bool leaves_out_measured_ = false;
  PointList trackable_, unpredicted_;
  core::RawVector<Start> starts_;
  std::optional<CoarseField> coarse_;  ///< what the image pyramid tells; found when it is first needed
};

}  // namespace dic::track

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

#include "track/cpu/reference_side.hpp"

namespace dic::track {

/// Where the refinement of a point begins.
struct Start {
  ShapeParameters shape;
  float score = -1;
};

/// The search: finds a start for every point of an anchor in the current image.
class StartSearch {
 public:
  /// range: see TrackOptions::search. check_stop throws where the measurement was cancelled; variants
  /// collects what ran.
  StartSearch(const Points& points, ReferenceSide& anchor, Correlator& correlator, std::optional<int> range,
              std::function<void()> check_stop, std::set<std::string>& variants)
      : points_(points),
        anchor_(anchor),
        correlator_(correlator),
        range_(range),
        check_stop_(std::move(check_stop)),
        variants_(variants) {}

  std::vector<Start> find(ImageView current);

 private:
  using PointList = std::vector<std::int64_t>;

  bool automatic() const { return !range_; }
  PointList start_from_last(std::span<const std::int64_t> which, std::vector<Start>& starts) const;
  void start_from_coarse(ImageView current, std::span<const std::int64_t> which, std::vector<Start>& starts);
  void search_from(ImageView current, PointList which, std::vector<Start>& starts);
  void find_lost(ImageView current, const PointList& which, std::vector<Start>& starts);

  const Points& points_;
  ReferenceSide& anchor_;
  Correlator& correlator_;
  std::optional<int> range_;
  std::function<void()> check_stop_;
  std::set<std::string>& variants_;
};

}  // namespace dic::track

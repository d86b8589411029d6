#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <functional>
#include <stop_token>
#include <vector>

#include "track/cpu/reference_side.hpp"
#include "track/cpu/start_search.hpp"

namespace dic::track {

/// From starts to points: refines them, recovers what was lost, and judges what was found.
class PointRefinement {
 public:
  /// check_stop throws where `stop` was requested.
  PointRefinement(const Points& points, const ReferenceSide& anchor, std::stop_token stop,
                  std::function<void()> check_stop)
      : points_(points), anchor_(anchor), stop_(std::move(stop)), check_stop_(std::move(check_stop)) {}

  /// Refines every point from its own start, the surely found ones first: in steep deformations the others
  /// are better off with the shape of a measured neighbour.
  std::vector<RefinedPoint> run(const std::vector<Start>& starts);

 private:
  using Results = std::vector<RefinedPoint>;
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

  RefinedPoint unrefined(std::int64_t i, const Start& start) const;
  PointList make(const Attempts& attempts, Results& results) const;
  void recover(Results& results, PointList fresh) const;
  Attempts front(const Results& results, const PointList& fresh) const;
  void drop_unconfirmed(Results& results) const;
  void explain_lost(Results& results) const;

  const Points& points_;
  const ReferenceSide& anchor_;
  std::stop_token stop_;
  std::function<void()> check_stop_;
};

}  // namespace dic::track

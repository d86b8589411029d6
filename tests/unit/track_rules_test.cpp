#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/departure_rules.hpp>
#include <dic/shared/track_rules.hpp>
#include <vector>

// Tests the rules of tracking on small grids with a known result.
namespace dic::test {
namespace {

constexpr int step = 5;

/// All nodes of a grid; every point is measured, certain, and has moved by (3, -1).
struct Points {
  using Index = int;
  int nx, ny;
  std::vector<int> point_at;
  std::vector<RefinedPoint> results;
  std::vector<char> can_be_tracked;
  Size size{1000, 1000};

  Points(int w, int h) : nx(w), ny(h), results(w * h), can_be_tracked(w * h, 1) {
    for (int node = 0; node < w * h; ++node) {
      point_at.push_back(node);
      results[node].status = Status::ok;
      results[node].zncc = 0.95f;
      results[node].shape.u = 3;
      results[node].shape.v = -1;
    }
  }

  RefinedPoint& at(int i, int j) { return results[j * nx + i]; }
  /// Moves a block of points away from the others, and makes them uncertain.
  void displace(int i, int j, int w, int h) {
    for (int b = j; b < j + h; ++b)
      for (int a = i; a < i + w; ++a) at(a, b).shape.u = 8, at(a, b).zncc = 0.7f;
  }
  bool dropped(int i, int j) const {
    std::vector<track::NeighbourSupport> supports;
    for (int k = 0; k < nx * ny; ++k) supports.push_back(track::neighbour_support(*this, k));
    std::array<int, track::kSmallIsland> island{};
    return track::unconfirmed(*this, supports, j * nx + i, island);
  }

  Status status(int i) const { return results[i].status; }
  float zncc(int i) const { return results[i].zncc; }
  const ShapeParameters& shape(int i) const { return results[i].shape; }
  bool trackable(int i) const { return can_be_tracked[i]; }
  int x(int i) const { return 20 + i % nx * step; }
  int y(int i) const { return 20 + i / nx * step; }
  Size image() const { return size; }
  track::SubsetBox box(int i) const { return {x(i) - 10, x(i) + 10, y(i) - 10, y(i) + 10}; }
  int measured_towards(int i, track::Direction towards) const {
    return track::trusted_towards(nx, ny, point_at.data(), i, towards, track::kDepartureReach,
                                  [this](int n) { return status(n) == Status::ok; });
  }
  template <typename Visit>
  void for_each_neighbour(int i, const Visit& visit) const {
    track::for_each_neighbour(nx, ny, point_at.data(), i, visit);
  }
};

std::vector<int> neighbours(const Points& points, int i) {
  std::vector<int> out;
  points.for_each_neighbour(i, [&](int n) { out.push_back(n); });
  return out;
}

TEST(TrackRules, NeighboursEndAtTheGridAndTheRoi) {
  Points points(4, 3);
  EXPECT_EQ(neighbours(points, 0), (std::vector{1, 4, 5}));
  EXPECT_EQ(neighbours(points, 5), (std::vector{0, 1, 2, 4, 6, 8, 9, 10}));
  EXPECT_EQ(neighbours(points, 11), (std::vector{6, 7, 10}));
  points.point_at = {-1, 0, 1, -1, 2, 3, 4, 5, -1, 6, 7, 8};
  EXPECT_EQ(neighbours(points, 5), (std::vector{0, 1, 2, 4, 6, 7}));  // neighbours of a node, as points
  EXPECT_EQ(neighbours(Points(1, 1), 0), std::vector<int>{});
}

TEST(TrackRules, AContinuedShapeIsTheSamePolynomial) {
  const ShapeParameters s{1, 0.1, 0.2, 0.01, 0.02, 0.03, -1, 0.3, 0.4, 0.04, 0.05, 0.06};
  const ShapeParameters there = track::extrapolated(s, 7, -4);
  for (const double dx : {-3.0, 0.0, 5.0})
    for (const double dy : {-2.0, 0.0, 6.0}) {
      EXPECT_NEAR(there.u_at(dx, dy), s.u_at(7 + dx, -4 + dy), 1e-12);
      EXPECT_NEAR(there.v_at(dx, dy), s.v_at(7 + dx, -4 + dy), 1e-12);
    }
}

TEST(TrackRules, AStartComesFromThePointOrItsBestNeighbour) {
  Points points(3, 3);
  EXPECT_EQ(track::start_source(points, 4), 4);
  points.at(1, 1).status = Status::diverged;
  EXPECT_EQ(track::start_source(points, 4), 0) << "of equal ones the first";
  points.at(2, 1).zncc = 0.97f;
  EXPECT_EQ(track::start_source(points, 4), 5);
  points.at(2, 1).status = Status::diverged;
  points.at(0, 2).zncc = 0.96f;
  EXPECT_EQ(track::start_source(points, 4), 6);
  for (RefinedPoint& point : points.results) point.status = Status::diverged;
  EXPECT_EQ(track::start_source(points, 4), -1);
}

TEST(TrackRules, LostAndContestedPointsAreWantedBesideFreshOnes) {
  Points points(5, 1);
  std::vector<char> fresh{1, 0, 0, 0, 0};
  EXPECT_FALSE(track::needs_recovery(points, fresh, 1)) << "certain";
  points.displace(1, 0, 1, 1);
  EXPECT_TRUE(track::needs_recovery(points, fresh, 1));
  points.results[0].zncc = 0.6f;
  EXPECT_FALSE(track::needs_recovery(points, fresh, 1)) << "the better of the two";
  points.results[1].status = points.results[2].status = Status::low_correlation;
  EXPECT_TRUE(track::needs_recovery(points, fresh, 1));
  EXPECT_FALSE(track::needs_recovery(points, fresh, 2)) << "not beside";
  points.can_be_tracked[1] = 0;
  EXPECT_FALSE(track::needs_recovery(points, fresh, 1));
}

TEST(TrackRules, OnlyBetterResultsReplace) {
  const auto result = [](Status status, float zncc, int iterations) {
    RefinedPoint out;
    out.status = status, out.zncc = zncc, out.iterations = static_cast<std::int16_t>(iterations);
    return out;
  };
  const RefinedPoint good = result(Status::ok, 0.8f, 4), better = result(Status::ok, 0.9f, 4);
  const RefinedPoint failed = result(Status::diverged, 0.85f, 4), untried = result(Status::flat, 0, 0);
  EXPECT_TRUE(track::replaces(better, good));
  EXPECT_FALSE(track::replaces(good, better));
  EXPECT_FALSE(track::replaces(good, good));
  EXPECT_TRUE(track::replaces(good, failed));
  EXPECT_FALSE(track::replaces(failed, good));
  EXPECT_FALSE(track::replaces(failed, failed));
  EXPECT_TRUE(track::replaces(failed, untried));
}

TEST(TrackRules, SmallIslandsAreDroppedAndLargeOnesKept) {
  for (const bool small : {true, false}) {
    Points points(12, 12);
    points.displace(4, 4, 4, small ? 3 : 4);
    for (int j = 4; j < (small ? 7 : 8); ++j)
      for (int i = 4; i < 8; ++i) EXPECT_EQ(points.dropped(i, j), small) << i << ", " << j;
    EXPECT_FALSE(points.dropped(3, 4)) << "certain";
  }
}

TEST(TrackRules, IslandsThatAreConfirmedOrUncontestedAreKept) {
  Points points(12, 12);
  points.displace(4, 4, 3, 3);
  points.at(6, 6).zncc = 0.95f;
  EXPECT_FALSE(points.dropped(4, 4)) << "reaches a certain one that agrees";
  Points doubtful(3, 4);
  doubtful.displace(0, 0, 3, 4);
  EXPECT_FALSE(doubtful.dropped(1, 1)) << "nobody contradicts";
  doubtful.at(2, 3).status = Status::low_correlation;
  EXPECT_TRUE(doubtful.dropped(1, 1)) << "a lost neighbour confirms nothing";
  doubtful.can_be_tracked[11] = 0;
  EXPECT_FALSE(doubtful.dropped(1, 1)) << "that could not be tracked says nothing";
}

TEST(TrackRules, SubsetsLeaveByTheirPixelsOwnArea) {
  EXPECT_FALSE(track::leaves(50, 39.5, 10, 100));
  EXPECT_TRUE(track::leaves(50, 39.6, 10, 100));
  EXPECT_FALSE(track::leaves(50, -40.5, 10, 100));
  EXPECT_TRUE(track::leaves(50, -40.6, 10, 100));
  EXPECT_FALSE(track::leaves(4, -0.5, 10, 100)) << "what the border cuts off was never there";
  EXPECT_TRUE(track::leaves(4, -0.6, 10, 100));
  Points points(4, 4);
  points.results[5].shape.ux = 1;
  EXPECT_FALSE(track::has_left_image(points, 6, 5, 10, 49, 60)) << "moved by 3 + 5 px";
  EXPECT_TRUE(track::has_left_image(points, 6, 5, 10, 48, 60));
}

/// A row of nodes at x = 20, 25, ..., moved by (3, -1), of which those from number `first` on are lost.
Points row_lost_from(int first, int nodes, int width) {
  Points points(nodes, 1);
  points.size = {width, 100};
  for (int i = first; i < nodes; ++i) points.results[i].status = Status::low_correlation;
  return points;
}

TEST(DepartureRules, PointsHaveSurelyLeftIfAPixelIsTwoPixelsBeyondTheEdge) {
  // The subset of node 3 is 25..45 in the reference, 28..48 now.
  EXPECT_TRUE(track::has_surely_left(row_lost_from(3, 4, 46), 3)) << "the edge is at 45.5";
  EXPECT_FALSE(track::has_surely_left(row_lost_from(3, 4, 47), 3));
  Points moved_left = row_lost_from(1, 2, 46);
  moved_left.results[0].shape.u = -17.6;
  EXPECT_TRUE(track::has_surely_left(moved_left, 1)) << "15 - 17.6 < -0.5 - 2";
  moved_left.results[0].shape.u = -17.4;
  EXPECT_FALSE(track::has_surely_left(moved_left, 1));
  moved_left.results[0].shape.ux = -0.1;
  EXPECT_TRUE(track::has_surely_left(moved_left, 1)) << "5 px further on";
}

TEST(DepartureRules, OnlyMeasuredPointsNearbyTell) {
  EXPECT_TRUE(track::has_surely_left(row_lost_from(1, 14, 46), 12)) << "12 nodes away";
  EXPECT_FALSE(track::has_surely_left(row_lost_from(1, 14, 46), 13));
  EXPECT_FALSE(track::has_surely_left(row_lost_from(0, 14, 46), 13)) << "nothing is measured";
}

TEST(DepartureRules, OnePointThatPredictsAPlaceInTheImageIsEnough) {
  Points points(5, 5);
  points.size = {41, 1000};  // the subset of the middle is 20..40 in the reference, 23..43 now
  points.at(2, 2).status = Status::low_correlation;
  EXPECT_TRUE(track::has_surely_left(points, 12));
  for (int node = 0; node < 25; ++node) {
    Points other = points;
    other.results[node].shape.u = 0;
    const bool is_nearest = node != 12 && std::abs(node % 5 - 2) < 2 && std::abs(node / 5 - 2) < 2;
    EXPECT_EQ(track::has_surely_left(other, 12), !is_nearest) << node;
  }
}

}  // namespace
}  // namespace dic::test

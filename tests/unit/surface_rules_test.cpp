#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <dic/shared/epipolar.hpp>
#include <dic/shared/node_window.hpp>
#include <numbers>
#include <random>
#include <set>

#include "stereo/axes.hpp"
#include "stereo/curved_match.hpp"
#include "stereo/epipolar_check.hpp"
#include "stereo/frame_geometry.hpp"
#include "support/surface_scenes.hpp"

// Tests the steps from matches to surfaces, which CPU and GPU share, against naive computations.
namespace dic {
namespace {

using stereo::NodeGrid;

template <int kMost>
void expect_connected(const NodeGrid& grid, const std::vector<std::uint8_t>& usable, int window) {
  for (std::int64_t k = 0; k < grid.nodes(); k += 3) {
    if (!usable[k]) continue;
    std::vector<std::int64_t> expected;
    test::connected_nodes(grid, usable, grid.column(k), grid.row(k), window, &expected);
    std::ranges::sort(expected);
    std::vector<std::int64_t> found;
    stereo::ConnectedNodes<kMost>(grid, usable.data(), k, window)
        .for_each([&](int di, int dj, std::int64_t node) {
          EXPECT_EQ(node, k + std::int64_t{dj} * grid.nx + di);
          found.push_back(node);
        });
    ASSERT_EQ(found, expected) << "node " << k << ", window " << window;
  }
}

TEST(ConnectedNodes, AreThoseThatASearchReaches) {
  const NodeGrid grid{70, 66, 0, 0, 1};
  for (const double share : {0.0, 0.1, 0.45}) {
    std::mt19937 random(3);
    std::vector<std::uint8_t> usable(static_cast<std::size_t>(grid.nodes()));
    for (auto& is : usable) is = std::uniform_real_distribution<double>(0, 1)(random) >= share;
    expect_connected<15>(grid, usable, 3);
    expect_connected<15>(grid, usable, 15);
    expect_connected<stereo::kMostBendWindow>(grid, usable, 41);
    expect_connected<63>(grid, usable, 63);
    expect_connected<127>(grid, usable, 65);
    expect_connected<127>(grid, usable, 127);
  }
}

TEST(SubtractBends, TakesTheBiasOfAQuadraticMotionAlsoBesideGaps) {
  const test::BendScene scene;
  Field field(scene.grid);
  std::ranges::copy(scene.u, field.u.begin()), std::ranges::copy(scene.v, field.v.begin());
  std::ranges::copy(scene.sigma_u, field.sigma_u.begin()),
      std::ranges::copy(scene.sigma_v, field.sigma_v.begin());
  std::ranges::copy(scene.status, field.status.begin());
  std::vector<stereo::BendResponse> responses(scene.u.size());
  for (std::size_t k = 0; k < responses.size(); ++k)
    std::copy_n(scene.responses.data() + 12 * k, 12, responses[k].data());
  MeasuredSubsets subsets;
  subsets.size = 21;
  stereo::BendFilter filter(subsets, scene.grid.step);
  filter.narrow = scene.narrow, filter.wide = scene.wide;
  core::ThreadPool pool(2);
  const auto summary = stereo::subtract_bends(field, subsets, filter, responses, pool);
  int known = 0;
  for (std::size_t k = 0; k < responses.size(); ++k) {
    ASSERT_EQ(summary.is_known[k] != 0, scene.is_known(k)) << k;
    const bool is_known = scene.is_known(k);
    known += is_known;
    for (int c = 0; c < 4; ++c)
      ASSERT_NEAR(summary.maps[4 * k + c], is_known ? scene.maps[k](c / 2, c % 2) : c % 3 == 0, 1e-6) << k;
    ASSERT_NEAR(field.u[k], scene.u[k] - (is_known ? scene.biases[k].x() : 0), 1e-7) << k;
    ASSERT_NEAR(field.v[k], scene.v[k] - (is_known ? scene.biases[k].y() : 0), 1e-7) << k;
  }
  EXPECT_GT(known, 900);
}

TEST(EpipolarCheck, MarksWhatDiffersFromTheCommonDistanceAndFromItsNeighbours) {
  const NodeGrid grid{60, 50, 0, 0, 5};
  const auto nodes = static_cast<std::size_t>(grid.nodes());
  std::mt19937 random(11);
  std::normal_distribution<float> noise(0, 0.01F);
  std::vector<float> px(nodes), sigma(nodes, 0.01F), offset(nodes);
  std::vector<Status> status(nodes, Status::ok), expected(nodes, Status::ok);
  const auto common = [&](std::int64_t k) {
    const double x = grid.column(k) / 30.0 - 1, y = grid.row(k) / 25.0 - 1;
    return static_cast<float>(0.2 + 0.1 * x * y - 0.05 * y * y * y);
  };
  for (std::size_t k = 0; k < nodes; ++k) px[k] = common(static_cast<std::int64_t>(k)) + noise(random);
  const auto at = [&](int i, int j) { return static_cast<std::size_t>(j) * grid.nx + i; };
  for (const auto& [i, j] : {std::pair(10, 10), {40, 7}, {59, 49}, {0, 20}})
    px[at(i, j)] += 0.3F, expected[at(i, j)] = Status::epipolar;
  for (int j = 30; j < 42; ++j)  // neighbours that are off together are believed, up to half a pixel
    for (int i = 5; i < 17; ++i) px[at(i, j)] += 0.2F;
  px[at(50, 40)] = std::numeric_limits<float>::quiet_NaN();
  status[at(20, 20)] = expected[at(20, 20)] = Status::diverged, px[at(20, 20)] = 7;
  status[at(21, 20)] = expected[at(21, 20)] = Status::outlier;
  core::ThreadPool pool(2);
  const auto summary =
      stereo::mark_contradictions({grid, px.data(), sigma.data(), offset.data(), status.data()}, pool);
  for (std::size_t k = 0; k < nodes; ++k) {
    const int i = static_cast<int>(k) % grid.nx, j = static_cast<int>(k) / grid.nx;
    const bool at_edge_of_patch = i >= 3 && i < 19 && j >= 28 && j < 44;
    if (at_edge_of_patch) continue;
    ASSERT_EQ(status[k], expected[k]) << i << ", " << j;
  }
  EXPECT_EQ(status[at(11, 36)], Status::ok) << "in the middle of the patch";
  std::vector<float> sizes;
  for (std::size_t k = 0; k < nodes; ++k)
    if (!std::isnan(px[k]) && k != at(20, 20)) sizes.push_back(std::abs(px[k]));
  std::ranges::sort(sizes);
  EXPECT_EQ(summary.median, sizes[sizes.size() / 2]);
  EXPECT_NEAR(summary.sd, 0.0103, 0.0012);
}

TEST(RigidMotion, IsFoundWithItsResidualAndSigmas) {
  const NodeGrid grid{41, 33, 0, 0, 5};
  const std::int64_t nodes = grid.nodes();
  const Eigen::Vector3d angles = Eigen::Vector3d(2, -7, 4) * std::numbers::pi / 180, shift(3, -2, 900);
  const Eigen::Matrix3d turn = Eigen::AngleAxisd(angles.norm(), angles.normalized()).toRotationMatrix();
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0, 1);
  const Eigen::Vector3d sd(1e-3, 2e-3, 4e-3);
  std::vector<stereo::Vector3> positions(nodes);
  std::vector<float> before(6 * nodes);
  Field field = stereo::new_stereo_field(std::make_shared<const Grid>(
      Grid{.step = 5, .nx = grid.nx, .ny = grid.ny, .inside = std::vector<std::uint8_t>(nodes, 1)}));
  stereo::FrameScratch scratch(nodes, false);
  Eigen::Vector3d centre = Eigen::Vector3d::Zero(), moved = centre;
  int count = 0;
  for (std::int64_t k = 0; k < nodes; ++k) {
    const double x = grid.column(k) - 20, y = grid.row(k) - 16;
    const Eigen::Vector3d p(x, y, 500 + 0.02 * x * x);
    const Eigen::Vector3d noise =
        sd.cwiseProduct(Eigen::Vector3d(normal(random), normal(random), normal(random)));
    positions[k] = stereo::from_eigen(p);
    scratch.displacement[k] = stereo::from_eigen(Eigen::Vector3d(turn * p + shift - p + noise));
    scratch.errors[k] = {};
    for (int axis = 0; axis < 3; ++axis)
      scratch.errors[k].now[axis] = static_cast<float>(sd[axis] * sd[axis]);
    field.status[k] = k % 17 == 0 ? Status::outlier : Status::ok;
    if (field.status[k] != Status::ok) {
      scratch.displacement[k] = stereo::vector3(50, 60, 70);
      continue;
    }
    centre += p, moved += turn * p + shift + noise, ++count;
  }
  centre /= count, moved /= count;
  stereo::SurfaceJob job{};
  job.grid = grid;
  job.reference.position = positions.data(), job.reference.covariance = before.data();
  job.out = stereo::arrays_of(field, scratch);
  core::ThreadPool pool(2);
  MeasuredSubsets subsets;
  subsets.size = 3;  // independent errors
  const RigidMotion motion = stereo::rigid_motion_of(job, subsets, pool);
  ASSERT_TRUE(motion.is_known);
  EXPECT_EQ(motion.points, count);
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(motion.centre_mm[axis], centre[axis], 1e-9);
    EXPECT_NEAR(motion.translation_mm[axis], moved[axis] - centre[axis], 1e-9);
    EXPECT_NEAR(motion.sigma_translation_mm[axis], sd[axis] / std::sqrt(count), 0.01 * sd[axis]);
    EXPECT_LT(std::abs(motion.rotation_deg[axis] - angles[axis] * 180 / std::numbers::pi),
              5 * motion.sigma_rotation_deg[axis]);
  }
  EXPECT_NEAR(motion.residual_mm, sd.norm(), 0.05 * sd.norm());
}

TEST(RigidMotion, NeedsThreePointsThatAreNotOnALine) {
  const NodeGrid grid{5, 1, 0, 0, 5};
  std::vector<stereo::Vector3> positions;
  for (int k = 0; k < 5; ++k) positions.push_back(stereo::vector3(k, 0, 500));
  const std::vector<float> before(30);
  Field field = stereo::new_stereo_field(std::make_shared<const Grid>(
      Grid{.step = 5, .nx = 5, .ny = 1, .inside = std::vector<std::uint8_t>(5, 1)}));
  std::ranges::fill(field.status, Status::ok);
  stereo::FrameScratch scratch(5, false);
  std::ranges::fill(scratch.displacement, stereo::vector3(0, 0, 0));
  stereo::SurfaceJob job{};
  job.grid = grid;
  job.reference.position = positions.data(), job.reference.covariance = before.data();
  job.out = stereo::arrays_of(field, scratch);
  core::ThreadPool pool(1);
  EXPECT_FALSE(stereo::rigid_motion_of(job, {}, pool).is_known);
  std::fill(field.status.begin() + 2, field.status.end(), Status::flat);
  EXPECT_FALSE(stereo::rigid_motion_of(job, {}, pool).is_known);
}

TEST(EpipolarSamples, AreSpreadOverAllDistances) {
  std::set<std::int64_t> numbers;
  for (int n = 0; n < stereo::kMostSamples; ++n) {
    const std::int64_t number = stereo::sample_number(n, 640000);
    ASSERT_TRUE(number >= 0 && number < 640000);
    numbers.insert(number / 1000);
  }
  EXPECT_EQ(numbers.size(), 640u);
}

}  // namespace
}  // namespace dic

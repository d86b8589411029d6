#include <gtest/gtest.h>

#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <fstream>
#include <memory>

#include "support/io_files.hpp"

// Tests values at points, extensometers, lines and areas of fields with known motion.
namespace dic {
namespace {

using namespace test;

/// Coefficients of the motion u = a x + b y + c, v = d x + e y + f.
struct Affine {
  double a = 0.01, b = -0.02, c = 3.5, d = 0.005, e = -0.003, f = -1.25;

  Position operator()(Position at) const {
    return {at.x + a * at.x + b * at.y + c, at.y + d * at.x + e * at.y + f};
  }
};

Grid square(int nodes) {
  Grid grid{.x0 = 10, .y0 = 20, .step = 5, .nx = nodes, .ny = nodes, .inside = {}};
  grid.inside.assign(grid.nodes(), 1);
  return grid;
}

/// A field with this motion. positions: the nodes in corrected coordinates, in which the motion is then
/// given.
Field field_of(const Affine& motion, const Grid& grid = square(20),
               const std::shared_ptr<NodePositions>& positions = nullptr) {
  Field field(grid);
  field.positions = positions;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
      const Position at{field.x(i, j), field.y(i, j)}, moved = motion(at);
      field.u[k] = moved.x - at.x, field.v[k] = moved.y - at.y;
      field.sigma_u[k] = 0.01f, field.sigma_v[k] = 0.02f, field.zncc[k] = 0.99f;
      field.status[k] = Status::ok;
    }
  field.strain = compute_strain(field, {.window = 5, .measure = StrainMeasure::engineering});
  return field;
}

double length(Position a, Position b) { return std::hypot(b.x - a.x, b.y - a.y); }

TEST(Probe, PointsOfAnAffineMotionAreExact) {
  const Affine motion;
  const Field field = field_of(motion);
  for (const Position at : {Position{10, 60}, {105, 60}, {22.5, 31}, {33.3, 47.9}, {55, 61.7}, {100, 75}}) {
    const PointValues point = probe_point(field, at);
    EXPECT_EQ(point.problem, "");
    EXPECT_NEAR(point.values["u"], motion(at).x - at.x, 1e-12);
    EXPECT_NEAR(point.values["v"], motion(at).y - at.y, 1e-12);
    EXPECT_NEAR(point.values["exx"], motion.a, 1e-6);
    EXPECT_NEAR(point.values["exy"], (motion.b + motion.d) / 2, 1e-6);
    EXPECT_NEAR(point.values["sigma_v"], 0.02, 1e-7) << "errors of neighbours are alike";
  }
  const PointValues corner = probe_point(field, {105, 20});
  EXPECT_NEAR(corner.values["u"], motion({105, 20}).x - 105, 1e-12);
  EXPECT_TRUE(std::isnan(corner.values["exx"]));
  EXPECT_NE(corner.problem.find("strain window"), std::string::npos);
}

TEST(Probe, ExtensometersOfAnAffineMotionAreExact) {
  const Affine motion;
  const Field field = field_of(motion);
  for (const auto& [a, b] :
       {std::pair<Position, Position>{{12, 23}, {99, 23}}, {{50, 30}, {50, 110}}, {{90, 100}, {20, 31}}}) {
    const ExtensometerValues values = probe_extensometer(field, a, b);
    EXPECT_EQ(values.problem, "");
    EXPECT_NEAR(values.gauge_length, length(a, b), 1e-12);
    EXPECT_NEAR(values.change, length(motion(a), motion(b)) - length(a, b), 1e-10);
    EXPECT_NEAR(values.strain, length(motion(a), motion(b)) / length(a, b) - 1, 1e-12);
  }
  const ExtensometerValues along_y = probe_extensometer(field_of({0, 0, 0, 0, 0.1, 0}), {50, 30}, {50, 110});
  EXPECT_NEAR(along_y.strain, 0.1, 1e-12);
  EXPECT_NEAR(along_y.sigma_change, 0.02 * std::sqrt(2), 1e-6);
  EXPECT_NEAR(along_y.sigma_strain, 0.02 * std::sqrt(2) / 80, 1e-8);
}

/// A rigid rotation by 90 degrees changes no length.
TEST(Probe, RotationIsNoStrain) {
  const Field field = field_of({-1, -1, 0, 1, -1, 0});
  EXPECT_NEAR(probe_extensometer(field, {20, 30}, {90, 80}).strain, 0, 1e-12);
}

TEST(Probe, CorrectedCoordinatesCount) {
  const Grid grid = square(20);
  auto positions =
      std::make_shared<NodePositions>(NodePositions{NodeValues<double>(400), NodeValues<double>(400)});
  const Affine camera{0.5, 0.1, -4, 0, 0.25, 2};
  for (int k = 0; k < 400; ++k) {
    const Position at = camera({static_cast<double>(grid.x(k % 20)), static_cast<double>(grid.y(k / 20))});
    positions->x[k] = at.x, positions->y[k] = at.y;
  }
  const Affine motion;
  const Field field = field_of(motion, grid, positions);
  const Position a{22, 33}, b{91, 77};
  const Position there = camera(a), end = camera(b);
  const ExtensometerValues values = probe_extensometer(field, a, b);
  EXPECT_NEAR(values.gauge_length, length(there, end), 1e-10);
  EXPECT_NEAR(values.strain, length(motion(there), motion(end)) / length(there, end) - 1, 1e-12);
  EXPECT_NEAR(probe_line(field, a, b).back().distance, length(there, end), 1e-10);
}

TEST(Probe, MissingNeighboursLeaveNoValueButAReason) {
  Field field = field_of({});
  field.status[5 * 20 + 7] = Status::low_correlation;  // the node at (45, 45)
  field.status[9 * 20 + 9] = Status::outlier;
  EXPECT_TRUE(std::isnan(probe_point(field, {44, 44}).values["u"]));
  EXPECT_NE(probe_point(field, {44, 44}).problem.find("(45, 45)"), std::string::npos);
  EXPECT_NE(probe_point(field, {44, 44}).problem.find("low_correlation"), std::string::npos);
  EXPECT_NE(probe_point(field, {56, 66}).problem.find("outlier"), std::string::npos);
  EXPECT_EQ(probe_point(field, {40, 44}).problem, "") << "on the line between two others";
  for (const Position at : {Position{9.9, 50}, {50, 115.1}, {std::nan(""), 50}, {1e300, 1e300}, {-1e300, 50}})
    EXPECT_NE(probe_point(field, at).problem.find("outside"), std::string::npos);
  const ExtensometerValues values = probe_extensometer(field, {20, 30}, {44, 44});
  EXPECT_TRUE(std::isnan(values.strain));
  EXPECT_NE(values.problem.find("second end"), std::string::npos);
}

/// Both sides of a crack are measured; values between them belong to neither side.
TEST(Probe, NothingIsInterpolatedAcrossACrack) {
  Field field = field_of({});
  for (int j = 0; j < 20; ++j)
    for (int i = 10; i < 20; ++i) field.u[j * 20 + i] += 4;
  EXPECT_NE(probe_point(field, {57, 62}).problem.find("crack"), std::string::npos);
  EXPECT_FALSE(std::isnan(probe_point(field, {44, 62}).values["u"]));
}

TEST(Probe, LinesHaveAPointPerStepAndBothEnds) {
  const Affine motion;
  const std::vector<LinePoint> line = probe_line(field_of(motion), {20, 30}, {20, 72});
  ASSERT_EQ(line.size(), 10u);
  EXPECT_EQ(line.front().distance, 0);
  EXPECT_NEAR(line.back().distance, 42, 1e-12);
  EXPECT_EQ(line.back().at.y, 72);
  for (const LinePoint& point : line)
    EXPECT_NEAR(point.point.values["u"], motion(point.at).x - point.at.x, 1e-12);
}

TEST(Probe, AreasAreMeansOfTheirOkNodes) {
  Field field = field_of({});
  const Grid& grid = field.grid();
  const std::vector<std::size_t> nodes = nodes_in(grid, {200, 200}, {{24, 34}, {41, 34}, {41, 51}, {24, 51}});
  ASSERT_EQ(nodes.size(), 16u);  // x = 25, 30, 35, 40; y = 35, 40, 45, 50
  field.status[nodes[0]] = Status::low_correlation;
  field.u[nodes[0]] = 1e6;
  const AreaValues area = probe_area(field, nodes);
  EXPECT_EQ(area.nodes, 16);
  EXPECT_EQ(area.points, 15);
  double sum = 0, squares = 0;
  for (std::size_t k = 1; k < nodes.size(); ++k) sum += field.u[nodes[k]];
  for (std::size_t k = 1; k < nodes.size(); ++k) squares += std::pow(field.u[nodes[k]] - sum / 15, 2);
  EXPECT_NEAR(area.mean["u"], sum / 15, 1e-12);
  EXPECT_NEAR(area.sd["u"], std::sqrt(squares / 15), 1e-12);
  EXPECT_THROW(nodes_in(grid, {200, 200}, {{1, 1}, {3, 1}, {3, 3}}), UsageError);
  EXPECT_THROW(nodes_in(grid, {200, 200}, {{1, 1}, {300, 1}}), UsageError);
}

}  // namespace
}  // namespace dic

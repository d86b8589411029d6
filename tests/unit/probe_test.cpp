#include <gtest/gtest.h>

#include <array>
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

// --- two cameras ---

using Space = std::array<double, 3>;

/// A field of two cameras whose nodes lie at `at` and move to `moved`, functions of the node's x, y in px.
template <typename At, typename Moved>
Field space_field(const At& at, const Moved& moved) {
  Field field = field_of({0, 0, 7, 0, 0, 0});  // the left image moves by 7 px
  StereoField& stereo = field.stereo;
  for (auto* values : {&stereo.x, &stereo.y, &stereo.z, &stereo.u, &stereo.v, &stereo.w})
    *values = NodeValues<double>(400);
  for (auto* values : {&stereo.sigma_x, &stereo.sigma_y, &stereo.sigma_z, &stereo.sigma_u, &stereo.sigma_v,
                       &stereo.sigma_w, &stereo.epipolar, &stereo.reprojection, &stereo.incidence})
    *values = NodeValues<float>(400, 0.0F);
  for (std::size_t k = 0; k < 400; ++k) {
    const double x = field.x(static_cast<int>(k % 20), 0), y = field.y(0, static_cast<int>(k / 20));
    const Space p = at(x, y), q = moved(x, y);
    stereo.x[k] = p[0], stereo.y[k] = p[1], stereo.z[k] = p[2];
    stereo.u[k] = q[0] - p[0], stereo.v[k] = q[1] - p[1], stereo.w[k] = q[2] - p[2];
    stereo.sigma_u[k] = 0.001F, stereo.sigma_v[k] = 0.002F, stereo.sigma_w[k] = 0.005F;
  }
  return field;
}

/// A plane at an angle, 0.1 mm per px, stretched by 2 % along x and turned in space: only the stretch counts.
TEST(ProbeInSpace, ExtensometersMeasureInSpace) {
  const auto at = [](double x, double y) -> Space { return {0.08 * x, 0.1 * y, 500 + 0.06 * x}; };
  const auto moved = [](double x, double y) -> Space { return {-0.1 * y, 0.0816 * x, 510 + 0.0612 * x}; };
  const Field field = space_field(at, moved);
  const ExtensometerValues along = probe_extensometer(field, {22, 33}, {91, 33});
  EXPECT_NEAR(along.gauge_length, 6.9, 1e-9);
  EXPECT_NEAR(along.change, 0.138, 1e-9);
  EXPECT_NEAR(along.strain, 0.02, 1e-9);
  // Along (0, 0.8, 0.6) with errors that may all be alike, at both ends.
  EXPECT_NEAR(along.sigma_change, std::sqrt(2) * (0.8 * 0.002 + 0.6 * 0.005), 1e-6);
  EXPECT_NEAR(probe_extensometer(field, {30, 33}, {30, 91}).strain, 0, 1e-9);
  const PointValues point = probe_point(field, {22, 33});
  EXPECT_NEAR(point.values["Z"], 501.32, 1e-9);
  EXPECT_NEAR(point.values["W"], 10.0264, 1e-9);
  EXPECT_NEAR(point.values["u"], 7, 1e-9);
}

/// A cylinder about y of radius 20 mm, which is seen from negative z, becomes one of 22 mm.
TEST(ProbeInSpace, ALineAroundACylinderKnowsItsSagAndItsLength) {
  const auto round = [](double radius) {
    return [radius](double x, double y) -> Space {
      const double angle = (x - 57.5) * 0.01;
      return {radius * std::sin(angle), 0.1 * y, 100 - radius * std::cos(angle)};
    };
  };
  const Field field = space_field(round(20), round(22));
  std::vector<LinePoint> line = probe_line(field, {20, 50}, {95, 50});
  const LineShape shape = probe_line_shape(field, line);
  EXPECT_NEAR(shape.length, 22 * 0.75, 0.002);
  EXPECT_NEAR(shape.change, 2 * 0.75, 0.001);
  const double sag = 1 - std::cos(0.375);
  EXPECT_NEAR(shape.deflection, -22 * sag, 0.03);  // towards the cameras
  EXPECT_NEAR(shape.bending, -2 * sag, 0.005);
  EXPECT_NEAR(shape.flatness, 22 * sag, 0.03);
  EXPECT_NEAR(shape.curvature, 1 / 22.0, 0.003);
  EXPECT_NEAR(shape.sigma_bending, std::sqrt(1.5) * 0.005, 0.0005);
  EXPECT_NEAR(line.front().offset, 0, 1e-12);
  EXPECT_NEAR(line[7].offset, shape.deflection, 0.05);
  EXPECT_NEAR(line.back().distance, 75, 1e-9) << "distances along the line are px";
}

TEST(ProbeInSpace, ALineThatMovesAsARigidBodyDoesNotBend) {
  const auto at = [](double x, double y) -> Space { return {0.1 * x, 0.1 * y, 0.001 * x * (x - 100)}; };
  const auto moved = [&](double x, double y) -> Space {
    const Space p = at(x, y);
    return {0.8 * p[0] - 0.6 * p[2] + 3, p[1] - 4, 0.6 * p[0] + 0.8 * p[2] + 5};
  };
  const Field field = space_field(at, moved);
  std::vector<LinePoint> line = probe_line(field, {15, 24}, {100, 110});
  const LineShape shape = probe_line_shape(field, line);
  EXPECT_NEAR(shape.bending, 0, 1e-9);
  EXPECT_NEAR(shape.change, 0, 1e-9);
  EXPECT_GT(shape.flatness, 0.1);
}

TEST(ProbeInSpace, OneCameraHasNoShapeAndFewPointsNeither) {
  std::vector<LinePoint> line = probe_line(field_of({}), {20, 30}, {20, 72});
  EXPECT_TRUE(std::isnan(probe_line_shape(field_of({}), line).length));
  const auto flat = [](double x, double y) -> Space { return {x, y, 100}; };
  Field field = space_field(flat, flat);
  line = probe_line(field, {20, 30}, {24, 30});
  EXPECT_TRUE(std::isnan(probe_line_shape(field, line).length)) << "two points";
  for (std::size_t k = 0; k < 400; ++k) field.status[k] = Status::epipolar;
  line = probe_line(field, {20, 30}, {95, 30});
  EXPECT_TRUE(std::isnan(probe_line_shape(field, line).flatness));
}

}  // namespace
}  // namespace dic

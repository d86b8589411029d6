#include <gtest/gtest.h>
#include <unistd.h>

#include <Eigen/Dense>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth_stereo.hpp>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>

#include "synth/random.hpp"
#include "synth/specimen.hpp"
#include "synth/speckle.hpp"
#include "synth/surface.hpp"

namespace dic {
using namespace synth;
namespace {

namespace fs = std::filesystem;

constexpr SurfaceKind kKinds[] = {SurfaceKind::plane, SurfaceKind::cylinder, SurfaceKind::dome,
                                  SurfaceKind::wave};

SpecimenSurface surface_of(SurfaceKind kind) { return {kind, 60, 3, 40}; }

SpecimenMotion bulged(SurfaceKind kind) {
  SpecimenMotion motion;
  motion.bulge_mm = 3, motion.bulge_width_mm = 15;
  if (kind == SurfaceKind::cylinder || kind == SurfaceKind::dome) motion.inflation = 0.02;
  motion.ux = 0.01, motion.uy = -0.02, motion.vx = 0.005, motion.vy = 0.03;
  motion.rotation_deg = {2, -3, 5};
  motion.translation_mm = {1, -2, 3};
  return motion;
}

/// A small scene: 3 px per mm, lenses with distortion.
StereoSynthOptions small_scene(SurfaceKind kind = SurfaceKind::plane) {
  StereoSynthOptions o;
  o.image.size = {240, 200};
  o.image.noise = 0;
  o.image.bits = 16;
  o.rig = convergent_rig(o.image.size, 600, 200, 30);
  for (RigCamera& camera : o.rig.cameras) {
    Lens& lens = *camera.camera.lens;
    lens.k1 = -0.2, lens.k2 = 0.1, lens.p1 = 1e-3, lens.p2 = -2e-3;
    lens.fy = 605, lens.cx += 3;
  }
  o.pose = facing_middle(o.rig, 200);
  o.surface = {kind, 40, 2, 30};
  return o;
}

/// Projection by the textbook: pose, pinhole, Brown's distortion.
Eigen::Vector2d project(const RigCamera& camera, const Vector& world) {
  Vector p;
  for (int k = 0; k < 3; ++k)
    p[k] = camera.rotation[3 * k] * world[0] + camera.rotation[3 * k + 1] * world[1] +
           camera.rotation[3 * k + 2] * world[2] + camera.translation_mm[k];
  const Lens& l = *camera.camera.lens;
  const double x = p[0] / p[2], y = p[1] / p[2], r2 = x * x + y * y, q = 1 + l.k1 * r2 + l.k2 * r2 * r2;
  return {l.fx * (x * q + 2 * l.p1 * x * y + l.p2 * (r2 + 2 * x * x)) + l.cx,
          l.fy * (y * q + l.p1 * (r2 + 2 * y * y) + 2 * l.p2 * x * y) + l.cy};
}

Vector vector(const std::array<double, 3>& v) { return {v[0], v[1], v[2]}; }

TEST(Surface, CoordinatesAndDerivativesBelongToItsPoints) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> even(-30, 30);
  for (const SurfaceKind kind : kKinds)
    for (const double amount : {0.0, 1.0}) {
      const DeformedSurface surface(surface_of(kind), bulged(kind), amount);
      for (int n = 0; n < 200; ++n) {
        const double a = even(random), b = even(random), h = 1e-5;
        const SurfacePoint p = surface.at(a, b);
        const SurfacePlace back = surface.place_of(p.point);
        EXPECT_NEAR(back.a, a, 1e-10);
        EXPECT_NEAR(back.b, b, 1e-10);
        EXPECT_NEAR(surface.above(p.point), 0, 1e-12);
        const Vector along_a = (surface.at(a + h, b).point - surface.at(a - h, b).point) / (2 * h);
        const Vector along_b = (surface.at(a, b + h).point - surface.at(a, b - h).point) / (2 * h);
        EXPECT_LT((along_a - p.along_a).norm(), 1e-8) << to_string(kind);
        EXPECT_LT((along_b - p.along_b).norm(), 1e-8) << to_string(kind);
      }
    }
}

TEST(Surface, ShapesAreThoseOfTheirNames) {
  const SpecimenMotion still;
  const Vector axis(0, 0, 60);
  for (const double a : {-70.0, -20.0, 0.0, 45.0})
    for (const double b : {-30.0, 0.0, 50.0}) {
      const auto at = [&](SurfaceKind kind) {
        return DeformedSurface(surface_of(kind), still, 0).at(a, b).point;
      };
      EXPECT_EQ(at(SurfaceKind::plane), Vector(a, b, 0));
      EXPECT_NEAR(std::hypot(at(SurfaceKind::cylinder).x(), at(SurfaceKind::cylinder).z() - 60), 60, 1e-12);
      EXPECT_NEAR((at(SurfaceKind::dome) - axis).norm(), 60, 1e-12);
      EXPECT_NEAR(at(SurfaceKind::wave).z(), 3 - 3 * std::cos(2 * std::numbers::pi * a / 40), 1e-12);
    }
}

TEST(Surface, RaysMeetItWhereTheyFirstCrossIt) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> even(-1, 1);
  for (const SurfaceKind kind : kKinds)
    for (const double amount : {0.0, 1.0, -0.7}) {
      const SpecimenSurface shape = {kind, 60, 6, 40};  // the wave hides some of itself
      const DeformedSurface surface(shape, bulged(kind), amount);
      int met = 0;
      for (int n = 0; n < 150; ++n) {
        const Vector origin(250 * even(random), 60 * even(random), -200);
        const Vector aim(75 * even(random), 60 * even(random), 30 + 30 * even(random));
        const Vector direction = (aim - origin).normalized();
        const auto hit = surface.first_hit(origin, direction);
        // Steps of 0.02 mm along the ray look for the first change of sign.
        double first = -1;
        for (double t = 120; t < 500 && first < 0; t += 0.02)
          if (surface.above(origin + t * direction) < 0) first = t;
        if (!hit) {
          EXPECT_LT(first, 0) << to_string(kind);
          continue;
        }
        ++met;
        const Vector point = surface.at(hit->a, hit->b).point;
        EXPECT_LT((point - origin).cross(direction).norm(), 1e-9) << "beside the ray";
        EXPECT_NEAR(surface.above(point), 0, 1e-10);
        if (first > 0) {
          EXPECT_NEAR((point - origin).dot(direction), first, 0.021) << to_string(kind);
        }
      }
      EXPECT_GT(met, 50);
    }
}

TEST(StereoScene, TheDefaultRigIsThatOfTheDocumentation) {
  const CameraRig rig = convergent_rig({1000, 800}, 2500, 500, 25);
  ASSERT_EQ(rig.cameras.size(), 2u);
  const Vector middle(0, 0, 500);
  for (const RigCamera& camera : rig.cameras) {
    const Eigen::Vector2d seen = project(camera, middle);
    EXPECT_NEAR(seen.x(), 499.5, 1e-9);
    EXPECT_NEAR(seen.y(), 399.5, 1e-9);
    EXPECT_NEAR((matrix_of(camera.rotation) * middle + vector(camera.translation_mm)).norm(), 500, 1e-9);
  }
  const double parallel = matrix_of(rig.cameras[1].rotation)(2, 2);
  EXPECT_NEAR(std::acos(parallel) * 180 / std::numbers::pi, 25, 1e-9);
  const Vector centre =
      -matrix_of(rig.cameras[1].rotation).transpose() * vector(rig.cameras[1].translation_mm);
  EXPECT_GT(centre.x(), 0) << "the second camera is on the right";
  EXPECT_NEAR(convergence_distance(rig), 500, 1e-9);
  const StereoScene scene{StereoSynthOptions{}};
  const StereoTruth truth = scene.truth(0, 499.5, 399.5);
  EXPECT_NEAR(truth.position_mm[2], 500, 1e-9);
  EXPECT_NEAR(truth.views[0].incidence_deg, 12.5, 1e-9);
  EXPECT_NEAR(truth.views[1].incidence_deg, 12.5, 1e-9);
}

TEST(StereoScene, PositionsAreWhereTheCamerasSeeThem) {
  for (const SurfaceKind kind : kKinds) {
    StereoSynthOptions o = small_scene(kind);
    o.motion = bulged(kind);
    const StereoScene scene(o);
    for (int y = 10; y < 200; y += 30)
      for (int x = 10; x < 240; x += 30) {
        const StereoTruth truth = scene.truth(1, x, y);
        if (std::isnan(truth.position_mm[0])) continue;
        const Vector before = vector(truth.position_mm), after = before + vector(truth.displacement_mm);
        EXPECT_NEAR(truth.views[0].reference.x, x, 1e-6);
        EXPECT_NEAR(truth.views[0].reference.y, y, 1e-6);
        for (std::size_t c = 0; c < 2; ++c) {
          const Eigen::Vector2d p = project(o.rig.cameras[c], before), q = project(o.rig.cameras[c], after);
          EXPECT_NEAR(truth.views[c].reference.x, p.x(), 1e-6);
          EXPECT_NEAR(truth.views[c].reference.y, p.y(), 1e-6);
          EXPECT_NEAR(truth.views[c].current.x, q.x(), 1e-6);
          EXPECT_NEAR(truth.views[c].current.y, q.y(), 1e-6);
        }
      }
  }
}

TEST(StereoScene, RigidMotionIsAppliedAsStated) {
  StereoSynthOptions o = small_scene(SurfaceKind::dome);
  o.motion.translation_mm = {3, -2, 4};
  o.motion.rotation_deg = {0, 0, 90};
  o.image.amounts = {0, 0.5, 1};
  const StereoScene scene(o);
  const Vector origin = vector(o.pose.origin_mm);
  for (const double x : {60.0, 119.5, 170.0}) {
    const StereoTruth truth = scene.truth(2, x, 80);
    const Vector p = vector(truth.position_mm) - origin, moved = p + vector(truth.displacement_mm);
    EXPECT_NEAR(moved.x(), -p.y() + 3, 1e-9);
    EXPECT_NEAR(moved.y(), p.x() - 2, 1e-9);
    EXPECT_NEAR(moved.z(), p.z() + 4, 1e-9);
    for (const double strain : {truth.exx, truth.eyy, truth.exy, truth.e1, truth.e2})
      EXPECT_NEAR(strain, 0, 1e-12);
  }
}

TEST(StereoScene, StrainIsKnownForSimpleMotions) {
  StereoSynthOptions o = small_scene(SurfaceKind::cylinder);
  o.motion.inflation = 0.01;
  const double hoop = 0.01 + 0.01 * 0.01 / 2;
  {
    const StereoTruth truth = StereoScene(o).truth(1, 90, 60);
    EXPECT_NEAR(truth.e1, hoop, 1e-12);
    EXPECT_NEAR(truth.e2, 0, 1e-12);
    EXPECT_NEAR(truth.exx, hoop, 1e-4);  // the hoop is not exactly along the projection of x
  }
  o.surface.kind = SurfaceKind::dome;
  {
    const StereoTruth truth = StereoScene(o).truth(1, 90, 60);
    EXPECT_NEAR(truth.e1, hoop, 1e-12);
    EXPECT_NEAR(truth.e2, hoop, 1e-12);
  }
  o.surface.kind = SurfaceKind::plane;
  o.motion = {};
  o.motion.ux = 0.02, o.motion.vy = -0.01, o.motion.uy = 0.03;
  o.pose = facing_first(200);
  const StereoTruth truth = StereoScene(o).truth(1, 90, 60);
  EXPECT_NEAR(truth.exx, 0.02 + 0.02 * 0.02 / 2, 1e-12);
  EXPECT_NEAR(truth.eyy, -0.01 + (0.03 * 0.03 + 0.01 * 0.01) / 2, 1e-12);
  EXPECT_NEAR(truth.exy, (0.03 + 0.02 * 0.03) / 2, 1e-12);
}

/// Changes of lengths between neighbouring pixels tell the strain without derivatives of the surface.
TEST(StereoScene, StrainAgreesWithChangesOfLength) {
  for (const SurfaceKind kind : kKinds) {
    StereoSynthOptions o = small_scene(kind);
    o.motion = bulged(kind);
    const StereoScene scene(o);
    for (const double x : {80.0, 121.0, 150.0})
      for (const double y : {60.0, 97.0, 140.0}) {
        constexpr double h = 0.01;
        Eigen::Matrix<double, 3, 2> lines, moved, axes;
        for (int k = 0; k < 2; ++k) {
          const double dx = k == 0 ? h : 0, dy = h - dx;
          const StereoTruth right = scene.truth(1, x + dx, y + dy), left = scene.truth(1, x - dx, y - dy);
          lines.col(k) = vector(right.position_mm) - vector(left.position_mm);
          moved.col(k) = lines.col(k) + vector(right.displacement_mm) - vector(left.displacement_mm);
        }
        const StereoTruth truth = scene.truth(1, x, y);
        const Vector normal = lines.col(0).cross(lines.col(1)).normalized();
        axes.col(1) = normal.cross(Vector::UnitX()).normalized();
        axes.col(0) = axes.col(1).cross(normal);
        // The strain e of a line l of the reference: |F l|^2 - |l|^2 = 2 l e l, for two lines and their sum.
        Eigen::Matrix3d equations;
        Vector changes;
        for (int k = 0; k < 3; ++k) {
          const Vector line = k < 2 ? Vector(lines.col(k)) : Vector(lines.col(0) + lines.col(1));
          const Vector after = k < 2 ? Vector(moved.col(k)) : Vector(moved.col(0) + moved.col(1));
          const double a = axes.col(0).dot(line), b = axes.col(1).dot(line);
          equations.row(k) << a * a, b * b, 2 * a * b;
          changes[k] = (after.squaredNorm() - line.squaredNorm()) / 2;
        }
        const Vector e = equations.fullPivLu().solve(changes);
        EXPECT_NEAR(truth.exx, e[0], 2e-6) << to_string(kind);
        EXPECT_NEAR(truth.eyy, e[1], 2e-6) << to_string(kind);
        EXPECT_NEAR(truth.exy, e[2], 2e-6) << to_string(kind);
        EXPECT_NEAR(truth.e1 + truth.e2, e[0] + e[1], 4e-6);
        EXPECT_NEAR(truth.e1 * truth.e2, e[0] * e[1] - e[2] * e[2], 1e-6);
      }
  }
}

/// Sum of all blobs at a material position, cell by cell.
double naive_speckle(const SpeckleSettings& settings, double a, double b) {
  double sum = 0;
  const auto column = static_cast<std::int64_t>(std::floor(a / settings.cell));
  const auto row = static_cast<std::int64_t>(std::floor(b / settings.cell));
  for (std::int64_t j = row - 7; j <= row + 7; ++j)
    for (std::int64_t i = column - 7; i <= column + 7; ++i) {
      const Blob blob = blob_of(settings, i, j);
      const double r2 = (a - blob.x) * (a - blob.x) + (b - blob.y) * (b - blob.y);
      sum += blob.sign * std::exp(-r2 / (2 * blob.sigma * blob.sigma));
    }
  return sum;
}

/// Finds by bisection, in the image alone, the direction that a pixel sees, and follows it to a plane or
/// cylinder given by its equation.
class NaiveView {
 public:
  NaiveView(const StereoSynthOptions& options, std::size_t camera)
      : o_(options), camera_(options.rig.cameras[camera]) {}

  /// Mean speckle of a pixel from n x n rays.
  template <typename Tone>
  double pixel(const SpeckleSettings& speckle, int x, int y, int n, double amount, const Tone& tone) const {
    double sum = 0;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        const Eigen::Vector2d m = material(x + (i + 0.5) / n - 0.5, y + (j + 0.5) / n - 0.5, amount);
        sum += tone(naive_speckle(speckle, m.x(), m.y()));
      }
    return sum / (n * n);
  }

 private:
  /// Direction in the camera's axes: Newton's method with numeric derivatives on the textbook's projection.
  Vector direction(double x, double y) const {
    RigCamera fixed = camera_;
    fixed.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}, fixed.translation_mm = {0, 0, 0};
    Eigen::Vector2d d(0, 0);
    for (int i = 0; i < 20; ++i) {
      constexpr double h = 1e-6;
      const Eigen::Vector2d at = project(fixed, {d.x(), d.y(), 1});
      Eigen::Matrix2d jacobian;
      jacobian << (project(fixed, {d.x() + h, d.y(), 1}) - at) / h,
          (project(fixed, {d.x(), d.y() + h, 1}) - at) / h;
      d += jacobian.inverse() * (Eigen::Vector2d(x, y) - at);
    }
    return {d.x(), d.y(), 1};
  }

  Eigen::Vector2d material(double x, double y, double amount) const {
    const Matrix rotation = matrix_of(camera_.rotation), pose = matrix_of(o_.pose.rotation);
    const Vector shift = vector(o_.pose.origin_mm) + amount * vector(o_.motion.translation_mm);
    const Vector from = pose.transpose() * (-rotation.transpose() * vector(camera_.translation_mm) - shift);
    const Vector along = pose.transpose() * rotation.transpose() * direction(x, y);
    if (o_.surface.kind == SurfaceKind::plane) {
      const Vector p = from - from.z() / along.z() * along;
      return {p.x(), p.y()};
    }
    const double radius = o_.surface.radius_mm * (1 + amount * o_.motion.inflation),
                 axis = o_.surface.radius_mm;
    const double a = along.x() * along.x() + along.z() * along.z();
    const double b = from.x() * along.x() + (from.z() - axis) * along.z();
    const double c = from.x() * from.x() + (from.z() - axis) * (from.z() - axis) - radius * radius;
    const Vector p = from + (-b - std::sqrt(b * b - a * c)) / a * along;
    return {axis * std::asin(p.x() / radius), p.y()};
  }

  const StereoSynthOptions& o_;
  const RigCamera& camera_;
};

/// Grey levels are a linear map of the mean speckle, the same for every image.
TEST(StereoScene, PixelsAreMeansOfTheSpeckleOverTheirArea) {
  for (const SurfaceKind kind : {SurfaceKind::plane, SurfaceKind::cylinder}) {
    StereoSynthOptions o = small_scene(kind);
    o.image.grey_min = 60, o.image.grey_max = 200;  // nothing is clipped
    o.contrast = 0;
    o.image.blob_sigma = kind == SurfaceKind::plane ? 0.8 : 1.7;
    o.motion.translation_mm = {1.3, -0.4, 2};
    if (kind == SurfaceKind::cylinder) o.motion.inflation = 0.03;
    const StereoScene scene(o);
    const double mm = 200.0 / 600;
    const SpeckleSettings speckle = {o.image.blob_sigma * mm, 2 * o.image.blob_sigma * mm, o.image.seed};
    std::vector<std::pair<double, double>> pairs;  // naive mean, grey
    for (const std::size_t camera : {0, 1})
      for (const int i : {0, 1}) {
        const Image image = scene.frame(camera, i);
        const NaiveView view(o, camera);
        for (const int x : {100, 118, 140})
          for (const int y : {37, 96, 150})
            pairs.emplace_back(view.pixel(speckle, x, y, 12, i, [](double blobs) { return blobs; }),
                               image.row<std::uint16_t>(y)[x] / 257.0);
      }
    Eigen::MatrixXd system(pairs.size(), 2);
    Eigen::VectorXd grey(pairs.size());
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      system.row(static_cast<Eigen::Index>(k)) << pairs[k].first, 1;
      grey[static_cast<Eigen::Index>(k)] = pairs[k].second;
    }
    const Eigen::VectorXd line = system.colPivHouseholderQr().solve(grey);
    EXPECT_GT(line[0], 10);
    // The midpoint rule of 12 x 12 rays is itself wrong by 1 / (24 * 144) of the second derivatives.
    EXPECT_LT((system * line - grey).cwiseAbs().maxCoeff(), kind == SurfaceKind::plane ? 0.08 : 0.03)
        << to_string(kind);
    // The line is the tone without contrast: 60 becomes -1, 200 becomes 1.
    o.contrast = 2;
    const Image painted = StereoScene(o).frame(1, 1);
    const auto tone = [&](double blobs) {
      return 130 + 70 * std::tanh(2 * (line[0] * blobs + line[1] - 130) / 70) / std::tanh(2);
    };
    for (const int x : {100, 118, 140})
      EXPECT_NEAR(NaiveView(o, 1).pixel(speckle, x, 96, 12, 1, tone),
                  painted.row<std::uint16_t>(96)[x] / 257.0, 0.2);
  }
}

TEST(StereoScene, MaterialThatOneCameraDoesNotSeeIsNotMeasurable) {
  StereoSynthOptions o = small_scene(SurfaceKind::cylinder);
  o.surface.radius_mm = 25;
  const StereoScene scene(o);
  int hidden = 0, seen = 0, beside = 0;
  for (int x = 0; x < 240; x += 3) {
    const StereoTruth truth = scene.truth(0, x, 100);
    if (std::isnan(truth.position_mm[0])) {
      ++beside;
      EXPECT_EQ(truth.measurable, Measurable::no);
      continue;
    }
    // The outside of a convex body is visible where its normal points to the camera.
    const Matrix pose = matrix_of(o.pose.rotation);
    const Vector p = pose.transpose() * (vector(truth.position_mm) - vector(o.pose.origin_mm));
    const Vector normal = pose * Vector(p.x(), 0, p.z() - 25).normalized();
    const RigCamera& right = o.rig.cameras[1];
    const Vector centre = -matrix_of(right.rotation).transpose() * vector(right.translation_mm);
    const double facing = normal.dot((centre - vector(truth.position_mm)).normalized());
    if (std::abs(facing) < 1e-3) continue;
    EXPECT_EQ(truth.views[1].seen, facing > 0) << x;
    EXPECT_EQ(truth.measurable, facing > 0 ? Measurable::yes : Measurable::no);
    EXPECT_NEAR(std::cos(truth.views[1].incidence_deg * std::numbers::pi / 180), facing, 1e-9);
    ++(facing > 0 ? seen : hidden);
  }
  EXPECT_GT(hidden, 2);
  EXPECT_GT(seen, 20);
  EXPECT_GT(beside, 5);
}

TEST(StereoScene, AWaveHidesItsValleys) {
  StereoSynthOptions o = small_scene(SurfaceKind::wave);
  o.surface.amplitude_mm = 15, o.surface.period_mm = 20;
  const StereoScene scene(o);
  const Specimen specimen(o, 0);
  const RigCamera& right = o.rig.cameras[1];
  const Vector centre = -matrix_of(right.rotation).transpose() * vector(right.translation_mm);
  int hidden = 0;
  for (int x = 20; x < 220; x += 2) {
    const StereoTruth truth = scene.truth(0, x, 100);
    const Eigen::Vector2d p = project(right, vector(truth.position_mm));
    if (p.x() < 1 || p.x() > 238) continue;
    // Any point of the surface between the material and the camera hides it.
    const Vector point = vector(truth.position_mm), step = (centre - point).normalized();
    double lowest = 1;
    for (double t = 0.05; t < 60; t += 0.05) lowest = std::min(lowest, specimen.above(point + t * step));
    if (std::abs(lowest) < 0.01) continue;  // grazing
    EXPECT_EQ(truth.views[1].seen, lowest > 0) << x;
    hidden += lowest < 0;
  }
  EXPECT_GT(hidden, 5);
}

TEST(StereoScene, BackgroundShowsBesideTheSpecimen) {
  StereoSynthOptions o = small_scene(SurfaceKind::cylinder);
  o.surface.radius_mm = 15;
  o.background = 77;
  o.right_gain = 0.5;
  const StereoScene scene(o);
  EXPECT_EQ(scene.frame(0, 0).row<std::uint16_t>(100)[2], 77 * 257);
  EXPECT_EQ(scene.frame(1, 0).row<std::uint16_t>(100)[2], std::lround(38.5 * 257));
}

TEST(StereoScene, TheSameSeedGivesTheSameImages) {
  StereoSynthOptions o = small_scene();
  o.image.noise = 2;
  o.image.threads = 1;
  const Image one = StereoScene(o).frame(1, 1);
  o.image.threads = 3;
  const Image three = StereoScene(o).frame(1, 1);
  o.image.seed = 2;
  const Image other = StereoScene(o).frame(1, 1);
  int differ = 0;
  for (int y = 0; y < one.height(); ++y)
    for (int x = 0; x < one.width(); ++x) {
      EXPECT_EQ(one.row<std::uint16_t>(y)[x], three.row<std::uint16_t>(y)[x]);
      differ += one.row<std::uint16_t>(y)[x] != other.row<std::uint16_t>(y)[x];
    }
  EXPECT_GT(differ, 40000);
}

TEST(StereoScene, ImpossibleOptionsAreRefused) {
  const auto refused = [](const auto& change, const std::string& word) {
    StereoSynthOptions o = small_scene(SurfaceKind::dome);
    change(o);
    const auto problems = o.validate();
    ASSERT_FALSE(problems.empty()) << word;
    EXPECT_NE(problems.front().find(word), std::string::npos) << problems.front();
    EXPECT_THROW(StereoScene{o}, UsageError);
  };
  refused([](auto& o) { o.image.texture = Texture::dots; }, "blobs");
  refused([](auto& o) { o.image.motion.u = 1; }, "two cameras");
  refused([](auto& o) { o.image.size.width = 100; }, "another size");
  refused([](auto& o) { o.surface.radius_mm = 0; }, "positive");
  refused([](auto& o) { o.surface.radius_mm = NAN; }, "finite");
  refused([](auto& o) { o.surface.kind = SurfaceKind::wave, o.motion.inflation = 0.1; }, "inflated");
  refused([](auto& o) { o.motion.inflation = -0.95; }, "tenth");
  refused([](auto& o) { o.motion.ux = -2; }, "folds");
  refused([](auto& o) { o.motion.translation_mm[2] = -300; }, "camera");
  refused([](auto& o) { o.pose.rotation[0] = 2; }, "rotation");
  refused([](auto& o) { o.rig.cameras[1].camera.lens.reset(); }, "lens");
  refused([](auto& o) { o.rig.cameras.clear(); }, "needs two cameras");
  const StereoScene scene(small_scene());
  EXPECT_THROW(scene.frame(2, 0), UsageError);
  EXPECT_THROW(scene.frame(0, 2), UsageError);
  EXPECT_THROW(scene.truth(-1, 0, 0), UsageError);
}

class StereoFolder : public testing::Test {
 protected:
  ~StereoFolder() override { fs::remove_all(folder_); }
  std::vector<std::string> lines() const {
    std::ifstream file(folder_ / "truth.csv");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  fs::path folder_ = fs::temp_directory_path() / ("dic_synth_stereo_" + std::to_string(getpid()));
};

std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) numbers.push_back(std::stod(cell));
  return numbers;
}

TEST_F(StereoFolder, HasImagesRigAndTruth) {
  StereoSynthOptions o = small_scene(SurfaceKind::dome);
  o.motion = bulged(SurfaceKind::dome);
  synth_stereo_sequence(o, folder_, 40);
  const StereoScene scene(o);
  for (const std::size_t camera : {0, 1}) {
    const Image file = read_image(folder_ / (camera == 0 ? "left" : "right") / "frame_0001.png");
    const Image made = scene.frame(camera, 1);
    for (int x = 0; x < 240; ++x) ASSERT_EQ(file.row<std::uint16_t>(90)[x], made.row<std::uint16_t>(90)[x]);
  }
  const CameraRig rig = read_camera_rig(folder_ / "stereo.json");
  ASSERT_EQ(rig.cameras.size(), 2u);
  EXPECT_DOUBLE_EQ(rig.cameras[1].camera.lens->k1, -0.2);
  EXPECT_DOUBLE_EQ(rig.cameras[1].translation_mm[0], o.rig.cameras[1].translation_mm[0]);
  const auto table = lines();
  ASSERT_GT(table.size(), 10u);
  EXPECT_EQ(
      table[0],
      "frame,x,y,u,v,X,Y,Z,U,V,W,exx,eyy,exy,e1,e2,incidence,right_x,right_y,right_u,right_v,right_incidence,"
      "measurable");
  const auto row = numbers_of(table.back());
  ASSERT_EQ(row.size(), 23u);
  const StereoTruth truth = scene.truth(static_cast<int>(row[0]), row[1], row[2]);
  EXPECT_NEAR(row[7], truth.position_mm[2], 1e-9);
  EXPECT_NEAR(row[10], truth.displacement_mm[2], 1e-9);
  EXPECT_NEAR(row[11], truth.exx, 1e-11);
  EXPECT_NEAR(row[17] + row[19], truth.views[1].current.x, 1e-9);
  EXPECT_THROW(synth_stereo_sequence(o, folder_, 40), FileError) << "the folder is not empty";
}

BoardSynthOptions board(TargetPattern pattern) {
  BoardSynthOptions o;
  o.image.size = {500, 400};
  o.image.noise = 0.5;
  o.image.grey_max = 220;
  o.rig = convergent_rig(o.image.size, 1250, 500, 25);
  o.rig.cameras[0].camera.lens->k1 = o.rig.cameras[1].camera.lens->k1 = -0.1;
  const double apart = pattern == TargetPattern::acircles ? 7 : pattern == TargetPattern::charuco ? 14 : 11;
  o.target = {pattern, 8, 6, apart, 10, "4X4_50"};
  o.poses = board_poses(o.rig, o.target, 500, 2, 1);
  return o;
}

TEST(Board, TargetsAreFoundWhereTheyAre) {
  for (const TargetPattern pattern :
       {TargetPattern::checkerboard, TargetPattern::circles, TargetPattern::acircles, TargetPattern::charuco,
        TargetPattern::rings}) {
    const BoardSynthOptions o = board(pattern);
    for (const std::size_t camera : {0, 1}) {
      constexpr int view = 1;
      const auto found = find_target(board_image(o, camera, view), o.target);
      const auto truth = board_points(o, camera, view);
      ASSERT_EQ(found.size(), truth.size()) << to_string(pattern) << " view " << view;
      // A board may be found from its other end; its points are the same.
      for (const TargetPoint& point : found) {
        double nearest = 1e9;
        const BoardPoint* best = nullptr;
        for (const BoardPoint& t : truth)
          if (const double d = std::hypot(t.place.x - point.x, t.place.y - point.y); d < nearest)
            nearest = d, best = &t;
        EXPECT_LT(nearest, 0.12) << to_string(pattern);
        if (pattern == TargetPattern::charuco) {
          EXPECT_NEAR(best->place.mm_x, point.mm_x, 1e-6);
          EXPECT_NEAR(best->place.mm_y, point.mm_y, 1e-6);
        }
      }
    }
  }
}

TEST(Board, PointsAreWhereTheCamerasSeeThem) {
  const BoardSynthOptions o = board(TargetPattern::checkerboard);
  for (const std::size_t camera : {0, 1})
    for (const BoardPoint& p : board_points(o, camera, 1)) {
      const Vector world = matrix_of(o.poses[1].rotation) * Vector(p.place.mm_x, p.place.mm_y, 0) +
                           vector(o.poses[1].origin_mm);
      EXPECT_LT((world - vector(p.position_mm)).norm(), 1e-9);
      const Eigen::Vector2d seen = project(o.rig.cameras[camera], world);
      EXPECT_NEAR(p.place.x, seen.x(), 1e-6);
      EXPECT_NEAR(p.place.y, seen.y(), 1e-6);
      EXPECT_TRUE(p.place.x > 0 && p.place.y > 0 && p.place.x < 499 && p.place.y < 399);
    }
}

/// A circle in perspective is an ellipse whose centre is not the image of the circle's centre; both its
/// centre and its area follow from points of its outline.
TEST(Board, CirclesAreExactEllipses) {
  BoardSynthOptions o = board(TargetPattern::circles);
  o.image.noise = 0;
  o.image.bits = 16;
  for (const double blur : {0.0, 0.6}) {
    o.blur_px = blur;
    const Image image = board_image(o, 1, 1);
    const auto points = board_points(o, 1, 1);
    for (const std::size_t k : {std::size_t{0}, std::size_t{21}, std::size_t{47}}) {
      const BoardPoint& p = points[k];
      // Area and centroid of the outline, a polygon of 2000 corners.
      double area = 0, moment_x = 0, moment_y = 0;
      Eigen::Vector2d last = Eigen::Vector2d::Zero();
      constexpr int kCorners = 2000;
      for (int n = 0; n <= kCorners; ++n) {
        const double angle = 2 * std::numbers::pi * n / kCorners, radius = 0.25 * o.target.square_mm;
        const Vector on =
            Vector(p.place.mm_x + radius * std::cos(angle), p.place.mm_y + radius * std::sin(angle), 0);
        const Eigen::Vector2d q =
            project(o.rig.cameras[1], matrix_of(o.poses[1].rotation) * on + vector(o.poses[1].origin_mm));
        if (n > 0) {
          const double twice = last.x() * q.y() - q.x() * last.y();
          area += twice / 2;
          moment_x += twice * (last.x() + q.x()) / 6;
          moment_y += twice * (last.y() + q.y()) / 6;
        }
        last = q;
      }
      double ink = 0, ink_x = 0, ink_y = 0;
      for (int y = static_cast<int>(p.place.y) - 11; y <= p.place.y + 11; ++y)
        for (int x = static_cast<int>(p.place.x) - 11; x <= p.place.x + 11; ++x) {
          const double share = (220 - image.row<std::uint16_t>(y)[x] / 257.0) / 200;
          ink += share, ink_x += share * x, ink_y += share * y;
        }
      EXPECT_NEAR(ink / std::abs(area), 1, 6e-4) << blur;
      EXPECT_NEAR(ink_x / ink, moment_x / area, 3e-3);
      EXPECT_NEAR(ink_y / ink, moment_y / area, 3e-3);
    }
  }
}

TEST(Board, TooLargeTargetsAreRefused) {
  BoardSynthOptions o = board(TargetPattern::checkerboard);
  o.target.square_mm = 40;
  EXPECT_THROW(board_poses(o.rig, o.target, 500, 2, 1), UsageError);
  o.target.square_mm = 10;
  o.poses.clear();
  EXPECT_THROW(board_image(o, 0, 0), UsageError);
}

TEST_F(StereoFolder, HasViewsOfATargetAndTheirPoints) {
  const BoardSynthOptions o = board(TargetPattern::checkerboard);
  synth_board_sequence(o, folder_);
  const auto table = lines();
  ASSERT_EQ(table.size(), 1 + 2u * 8 * 6);
  EXPECT_EQ(table[0], "frame,column,row,mm_x,mm_y,X,Y,Z,left_x,left_y,right_x,right_y");
  const auto row = numbers_of(table.back());
  ASSERT_EQ(row.size(), 12u);
  const auto right = board_points(o, 1, 1);
  EXPECT_NEAR(row[10], right.back().place.x, 1e-9);
  EXPECT_EQ(read_image(folder_ / "right" / "frame_0001.png").width(), 500);
  EXPECT_EQ(read_camera_rig(folder_ / "stereo.json").cameras.size(), 2u);
}

}  // namespace
}  // namespace dic

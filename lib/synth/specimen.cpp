#include "synth/specimen.hpp"

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <cmath>
#include <limits>
#include <numbers>

namespace dic::synth {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Matrix stretch_of(const SpecimenMotion& motion, double amount) {
  Matrix stretch = Matrix::Identity();
  stretch(0, 0) += amount * motion.ux, stretch(0, 1) += amount * motion.uy;
  stretch(1, 0) += amount * motion.vx, stretch(1, 1) += amount * motion.vy;
  return stretch;
}

}  // namespace

Vector vector_of(const std::array<double, 3>& values) { return Vector(values.data()); }

Matrix matrix_of(const std::array<double, 9>& values) {
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(values.data());
}

std::array<double, 9> rows_of(const Matrix& m) {
  return {m(0, 0), m(0, 1), m(0, 2), m(1, 0), m(1, 1), m(1, 2), m(2, 0), m(2, 1), m(2, 2)};
}

Matrix rotation_about(const Vector& vector) {
  const double angle = vector.norm();
  if (angle == 0) return Matrix::Identity();
  return Eigen::AngleAxisd(angle, vector / angle).toRotationMatrix();
}

ViewingCamera::ViewingCamera(const RigCamera& camera)
    : lens_(camera.camera),
      rotation_(matrix_of(camera.rotation)),
      translation_(vector_of(camera.translation_mm)),
      centre_(-rotation_.transpose() * translation_) {}

Vector ViewingCamera::direction(double x, double y) const {
  const Lens& lens = *lens_.parameters().lens;
  const Camera::Point ideal = lens_.undistort(x, y);
  const Vector along((ideal.x - lens.cx) / lens.fx, (ideal.y - lens.cy) / lens.fy, 1);
  return rotation_.transpose() * along.normalized();
}

Camera::Point ViewingCamera::project(const Vector& point) const {
  const Lens& lens = *lens_.parameters().lens;
  const Vector p = rotation_ * point + translation_;
  if (!(p.z() > 0)) return {kNone, kNone};
  const Camera::Point ideal = {lens.fx * p.x() / p.z() + lens.cx, lens.fy * p.y() / p.z() + lens.cy};
  const Camera::Point seen = lens_.distort(ideal.x, ideal.y), back = lens_.undistort(seen.x, seen.y);
  // Far outside the image a model of distortion may fold back into it.
  constexpr double kFolded = 1e-3;  // px
  if (!(std::hypot(back.x - ideal.x, back.y - ideal.y) < kFolded)) return {kNone, kNone};
  return seen;
}

Specimen::Specimen(const StereoSynthOptions& options, double amount)
    : surface_(options.surface, options.motion, amount) {
  const SpecimenMotion& motion = options.motion;
  const Vector turn = amount * std::numbers::pi / 180 * vector_of(motion.rotation_deg);
  to_world_ = rotation_about(turn) * matrix_of(options.pose.rotation) * stretch_of(motion, amount);
  from_world_ = to_world_.inverse();
  origin_ = vector_of(options.pose.origin_mm) + amount * vector_of(motion.translation_mm);
}

SurfacePoint Specimen::at(double a, double b) const {
  const SurfacePoint p = surface_.at(a, b);
  return {origin_ + to_world_ * p.point, to_world_ * p.along_a, to_world_ * p.along_b};
}

double Specimen::above(const Vector& point) const { return surface_.above(from_world_ * (point - origin_)); }

std::optional<SurfacePlace> Specimen::seen(const ViewingCamera& camera, double x, double y) const {
  const Vector direction = from_world_ * camera.direction(x, y);
  if (!std::isfinite(direction.sum())) return std::nullopt;
  const auto place = surface_.first_hit(from_world_ * (camera.centre() - origin_), direction.normalized());
  constexpr double kHorizon = 1e5;  // mm
  if (!place || std::abs(place->a) > kHorizon || std::abs(place->b) > kHorizon) return std::nullopt;
  return place;
}

bool Specimen::visible(const ViewingCamera& camera, const Camera::Point& pixel, const Vector& point) const {
  constexpr double kSame = 1e-5;  // mm
  const auto first = seen(camera, pixel.x, pixel.y);
  return first && (at(first->a, first->b).point - point).norm() < kSame;
}

}  // namespace dic::synth

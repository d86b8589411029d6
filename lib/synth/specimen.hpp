#pragma once

#include <Eigen/Core>
#include <dic/camera.hpp>
#include <dic/synth_stereo.hpp>
#include <optional>

#include "synth/surface.hpp"

namespace dic::synth {

/// A camera of a rig in the world.
class ViewingCamera {
 public:
  explicit ViewingCamera(const RigCamera& camera);

  Size image() const { return lens_.parameters().image; }
  const Vector& centre() const { return centre_; }
  /// Direction, of length 1, in which a pixel looks; NaN where the lens model has no inverse.
  Vector direction(double x, double y) const;
  /// Image position of a point, px; NaN if the camera does not see in its direction.
  Camera::Point project(const Vector& point) const;

 private:
  Camera lens_;
  Matrix rotation_;
  Vector translation_, centre_;
};

/// The specimen in the world at one amount of motion.
class Specimen {
 public:
  Specimen(const StereoSynthOptions& options, double amount);

  /// Position of a material point in the world, mm, with its derivatives.
  SurfacePoint at(double a, double b) const;
  /// The material that a camera shows at a pixel; none beside the specimen.
  std::optional<SurfacePlace> seen(const ViewingCamera& camera, double x, double y) const;
  /// True if no other part of the specimen hides a material point from a camera that shows it at `pixel`.
  bool visible(const ViewingCamera& camera, const Camera::Point& pixel, const Vector& point) const;
  /// Height of a point of the world above the surface, mm, in the axes of the unstretched specimen.
  double above(const Vector& point) const;

 private:
  DeformedSurface surface_;
  Matrix to_world_, from_world_;
  Vector origin_;
};

Vector vector_of(const std::array<double, 3>& values);
Matrix matrix_of(const std::array<double, 9>& values);
std::array<double, 9> rows_of(const Matrix& matrix);
/// The rotation about a vector by its length, rad.
Matrix rotation_about(const Vector& vector);

}  // namespace dic::synth

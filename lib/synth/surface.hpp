#pragma once

#include <Eigen/Core>
#include <dic/synth_stereo.hpp>
#include <optional>

namespace dic::synth {

using Vector = Eigen::Vector3d;
using Matrix = Eigen::Matrix3d;

/// Coordinates on a surface, mm: those of the material, and the height above the undeformed surface along its
/// normal (wave: against z), positive towards the cameras.
struct SurfacePlace {
  double a = 0, b = 0, height = 0;
};

/// A point of a surface and its derivatives with respect to the coordinates of the material.
struct SurfacePoint {
  Vector point, along_a, along_b;
};

/// A surface with a bulge, in the axes of the specimen: all points whose height is height(a, b).
class DeformedSurface {
 public:
  DeformedSurface(const SpecimenSurface& surface, const SpecimenMotion& motion, double amount);

  SurfacePoint at(double a, double b) const;
  SurfacePlace place_of(const Vector& point) const;
  /// The first point at which a ray from outside meets the surface, to 1e-11 mm along its normal; none if it
  /// misses it. direction: of length 1.
  std::optional<SurfacePlace> first_hit(const Vector& origin, const Vector& direction) const;
  /// Height of a point above the deformed surface; negative inside.
  double above(const Vector& point) const;

 private:
  struct Height {
    double value = 0, along_a = 0, along_b = 0;
  };
  Height height(double a, double b) const;
  double entry(double height, const Vector& origin, const Vector& direction) const;

  SpecimenSurface surface_;
  double offset_ = 0, bulge_ = 0, width_ = 1;
  double slope_ = 1;  // an upper bound of the change of above() per mm
};

}  // namespace dic::synth

#pragma once

#include <Eigen/Core>
#include <dic/fields.hpp>
#include <span>
#include <vector>

#include "core/parallel.hpp"

/// Strain in the tangent plane of a surface.
namespace dic::stereo {

/// Covariance of the errors of a point in the current frame (first three) and in the reference (last three),
/// mm^2.
using PointCovariance = Eigen::Matrix<float, 6, 6>;

/// The points of a frame, [ny x nx].
struct SurfacePoints {
  const Grid& grid;
  std::span<const std::uint8_t> usable;  ///< value 1 for each node that takes part in fits
  std::span<const Eigen::Vector3d> positions, displacements;  ///< mm
  std::span<const PointCovariance> covariances;
  /// The part of the covariances that comes from the right images alone.
  std::span<const PointCovariance> right_covariances;
};

/// Subsets in the images of both cameras, for the correlation of the errors of neighbours.
struct StereoSubsets {
  MeasuredSubsets left, right;
};

/// The strain of a surface: least-squares fits over a window of nodes give the tangents of the surface before
/// and after, and the change of their lengths and angle is the strain. The fits are linear in the values, so
/// that those of a surface that moves as a rigid body move with it: neither curvature nor a motion out of the
/// plane appears as strain, also where nodes are missing. On a complete window a quadratic polynomial would
/// have the same tangents at its centre. x of the strain is the direction of the x axis along the
/// surface, y is perpendicular to it in the tangent plane.
///
/// measured: 1 for each node that gets a strain.
StrainField surface_strain(const SurfacePoints& points, std::span<const std::uint8_t> measured,
                           const StrainOptions& options, const StereoSubsets& subsets,
                           core::ThreadPool& pool);

}  // namespace dic::stereo

#pragma once

#include <Eigen/Core>
#include <dic/fields.hpp>
#include <dic/shared/surface_motion.hpp>
#include <dic/stereo.hpp>
#include <span>

#include "core/parallel.hpp"
#include "stereo/camera_pair.hpp"

/// Axes of a measurement, and the motion of a surface as a rigid body.
namespace dic::stereo {

/// Axes in those of the left camera: a position P has the coordinates rotation (P - origin).
struct Axes {
  Eigen::Matrix3d rotation = Eigen::Matrix3d::Identity();
  Eigen::Vector3d origin = Eigen::Vector3d::Zero();
};

/// The axes that the options ask for. positions: of the nodes in the axes of the left camera. usable: 1 for
/// each node whose position counts. Throws UsageError if the points do not define them.
Axes axes_of(const StereoOptions& options, const Grid& grid, std::span<const Vector3> positions,
             std::span<const std::uint8_t> usable);

/// The motion that fits the displacements of the `ok` nodes best, with its standard deviations by the noise
/// of the images. Not known for fewer than three nodes, or nodes on one line.
RigidMotion rigid_motion_of(const SurfaceJob& points, const MeasuredSubsets& subsets, core::ThreadPool& pool);
/// The same motion from the sums over the nodes.
RigidMotion rigid_motion_of(const MotionMeans& means, const MotionMoments& moments,
                            const MeasuredSubsets& subsets, int step);

/// The motion to be subtracted from the displacements.
MotionTerms motion_terms(const RigidMotion& motion, bool is_removed);

}  // namespace dic::stereo

#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>
#include <dic/shared/bends.hpp>
#include <dic/shared/epipolar.hpp>
#include <dic/shared/surface_motion.hpp>
#include <dic/shared/surface_strain.hpp>

/// Surfaces from the matches of two cameras. All pointers of the jobs are device memory; each function queues
/// its work. Formulas are those of <dic/shared/>; results differ from the CPU's by rounding and are
/// repeatable.
namespace dic::kernels {

/// Queues the steps of <dic/shared/bends.hpp>.
void launch_subtract_bends(const stereo::BendJob& job, StreamHandle stream);

/// Queues measuring the points of a frame, see stereo::MeasurePoint.
void launch_measure_points(const stereo::SurfaceJob& job, bool orders_differ, StreamHandle stream);

/// Some of the epipolar distances of a frame, as stereo::sample_number chooses them.
struct SampledDistances {
  std::int32_t count;                                    ///< number of all distances
  stereo::EpipolarSample samples[stereo::kMostSamples];  ///< the first min(count, kMostSamples) are filled
};
std::size_t sample_workspace_bytes(const stereo::NodeGrid& grid);
void launch_sample_distances(const stereo::EpipolarJob& job, SampledDistances* samples, void* workspace,
                             StreamHandle stream);

/// Queues the fit of what is common to the distances of samples, see stereo::CommonFit.
void launch_fit_common_distance(const SampledDistances* samples, stereo::CommonDistance* common,
                                StreamHandle stream);

/// Queues finding the offsets from what is common, and marking contradictions.
void launch_mark_contradictions(const stereo::EpipolarJob& job, const stereo::CommonDistance* common,
                                StreamHandle stream);

/// Medians of the distances and of their offsets from what is common, both without sign, px.
struct EpipolarMedians {
  float distance, offset;  ///< NaN if there are none
};
std::size_t median_workspace_bytes();
/// Queues finding the medians, after the offsets.
void launch_epipolar_medians(const stereo::EpipolarJob& job, EpipolarMedians* medians, void* workspace,
                             StreamHandle stream);

/// Sums from which the motion as a rigid body follows.
struct MotionSums {
  stereo::MotionMeans means;
  stereo::MotionMoments moments;
};
std::size_t motion_workspace_bytes();
void launch_sum_motion(const stereo::SurfaceJob& job, MotionSums* sums, void* workspace, StreamHandle stream);

/// Queues storing displacements, see stereo::StoreDisplacement.
void launch_store_displacements(const stereo::SurfaceJob& job, const stereo::MotionTerms& motion,
                                StreamHandle stream);
/// Queues the strain of all points, see stereo::SurfaceStrain.
void launch_surface_strain(const stereo::SurfaceJob& job, const StrainOptions& options,
                           const MeasuredSubsets& left, const MeasuredSubsets& right, StreamHandle stream);

}  // namespace dic::kernels

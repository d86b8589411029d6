#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/surface_points.hpp>
#include <dic/shared/surface_strain.hpp>
#include <dic/stereo.hpp>
#include <memory>
#include <vector>

#include "core/parallel.hpp"
#include "stereo/bend_response.hpp"
#include "stereo/curved_match.hpp"

/// Steps of every frame after its matches, and the interface of the backends (CPU, CUDA) that do them.
namespace dic::stereo {

/// Subsets in the images of both cameras, for the correlation of the errors of neighbours.
struct StereoSubsets {
  MeasuredSubsets left, right;
};

/// Arrays of ReferencePoints.
struct ReferenceMemory {
  std::vector<Vector3> position;
  std::vector<FromPixels> from_px;
  std::vector<float> covariance, calibration_sigma, sigma, map, incidence;
  std::vector<Status> status;

  void reset(std::size_t nodes);
  ReferencePoints view() const;
};

/// All that the frames of a measurement have in common. The pointers live as long as the measurement.
struct FrameGeometry {
  std::shared_ptr<const Grid> grid;
  CameraPair cameras;
  AxesTerms axes;
  const std::vector<double>* calibration_factor;  ///< of CalibrationTerms; empty: not known
  const ReferenceMemory* reference;
  StereoSubsets subsets;
  BendFilter filter;
  const std::vector<BendResponse>* responses;
  StrainOptions strain;
  bool removes_motion = false;

  bool orders_differ() const { return subsets.left.order != subsets.right.order; }
};

/// Measures the surface of frames, in any order and one after the other.
class FrameBackend {
 public:
  virtual ~FrameBackend() = default;
  /// left, right: results of both trackers, whose displacements may be changed.
  virtual StereoFrame frame(FrameResult left, FrameResult right) = 0;
};

/// Opens a GPU; null if its memory is too small. pool: lives longer than the backend. Builds without CUDA
/// define it in cuda/frames_cuda_stub.cpp.
std::unique_ptr<FrameBackend> open_cuda_frames(const FrameGeometry& geometry, int ordinal,
                                               core::ThreadPool& pool);

/// An array that is not initialized.
template <typename T>
NodeValues<T> new_values(std::int64_t nodes) {
  return {std::make_shared_for_overwrite<T[]>(static_cast<std::size_t>(nodes)),
          static_cast<std::size_t>(nodes)};
}

/// A field for SurfaceArrays. Its values are not initialized.
Field new_stereo_field(std::shared_ptr<const Grid> grid);

/// Arrays of a frame that are not part of its field.
struct FrameScratch {
  FrameScratch(std::int64_t nodes, bool orders_differ);

  std::vector<Vector3> displacement;
  std::vector<PointErrors> errors, right_errors;
  std::vector<float> epipolar_sigma, offset;
  std::vector<std::uint8_t> usable;
  std::vector<strain::Squares> flattened;
};

/// The arrays of a field and of a scratch memory.
SurfaceArrays arrays_of(Field& field, FrameScratch& scratch);

MatchPoints match_points(const Field& field, const LocalMaps& maps);

/// The numbers of a frame that come from its matches.
StereoFrame new_stereo_frame(const FrameResult& left, const FrameResult& right);

/// Computes the strain of all points.
void find_strain(const SurfaceJob& job, const StrainOptions& options, const StereoSubsets& subsets,
                 core::ThreadPool& pool);

}  // namespace dic::stereo

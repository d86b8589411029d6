#pragma once

#include <cstdint>
#include <dic/refine_rig.hpp>
#include <dic/stereo.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "core/parallel.hpp"
#include "stereo/axes.hpp"
#include "stereo/calibration_errors.hpp"
#include "stereo/curved_match.hpp"
#include "stereo/frame_geometry.hpp"

/// Surfaces from the matches of two cameras.
namespace dic::stereo {

/// The match of one image with the left reference.
struct Match {
  FrameResult result;
  NeighbourSummary neighbours;
  const Field& field() const { return result.field; }
  Field& field() { return result.field; }
};

/// Computes the shape in the references, and surfaces of later frames.
class Surface {
 public:
  /// options: with those chosen from the reference. left: its pixels on the host.
  Surface(const StereoOptions& options, const CameraRig& rig, std::shared_ptr<const Grid> grid,
          ImageView left, core::ThreadPool& pool);
  ~Surface();

  /// Prepares the result of a tracker. order: of its subsets.
  Match matched(FrameResult result, int order) const;
  /// The shape in the references. right_order: of the subsets in the right images.
  StereoFrame reference(Match right, int right_order);
  /// The shape in the references with another rig.
  StereoFrame reference_with(const CameraRig& rig);
  /// How a rig must change for the matches of the references; nothing if these are too few.
  std::optional<RigCorrection> correction_of(const CameraRig& rig) const;
  /// Derivative of the right by the left reference image point at every node.
  const LocalMaps& maps_across() const { return right_reference_->neighbours.maps; }

  /// Computes later frames on a GPU, if it has the memory; call it after the last reference().
  void use_gpu(int ordinal);
  /// Surface of a later frame, from the results of both trackers. Frames may be computed while images of
  /// others are matched.
  StereoFrame frame(FrameResult left, FrameResult right);

 private:
  StereoFrame reference_in_axes();
  void measure_reference(std::int64_t k, const SurfaceJob& job, const Field& match);
  bool is_beside_steep(std::int64_t k) const;
  float incidence_of(const Seen& right, const SurfacePoint& point) const;
  SurfaceJob job() const;
  FrameGeometry geometry() const;
  Seen seen(const Match& match, std::int64_t k) const;
  template <typename Body>
  void for_each_node(const Body& body) const {
    core::for_each_index(pool_, grid_->nodes(), body);
  }

  StereoOptions options_;
  CameraPair cameras_;
  CalibrationErrors calibration_;
  Axes axes_;
  std::shared_ptr<const Grid> grid_;
  core::ThreadPool& pool_;
  StereoSubsets subsets_;
  BendFilter filter_;
  std::vector<BendResponse> responses_;
  std::optional<Match> right_reference_;
  ReferenceMemory reference_;
  std::unique_ptr<FrameBackend> gpu_;  ///< null: frames are computed on the CPU
};

}  // namespace dic::stereo

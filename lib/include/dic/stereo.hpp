#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/refine_rig.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/track.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

/// Shape, displacement and strain of a surface in 3-D, from the images of two calibrated cameras.
namespace dic {

/// The axes of positions and displacements.
enum class StereoAxes : std::uint8_t {
  camera,    ///< axes of the left camera: x to the right, y down, z along its optical axis
  plane,     ///< axes of the best-fit plane of the reference: origin in the middle of its points, z away from
             ///< the camera
  cylinder,  ///< axes of the best-fit cylinder of the reference: y along its axis, origin on it, z away from
             ///< the camera
  points  ///< axes through three points of the reference: origin, a point on x, a point in the plane of x and
          ///< y
};
template <>
struct EnumNames<StereoAxes> {
  static constexpr EnumName<StereoAxes> table[] = {{StereoAxes::camera, "camera"},
                                                   {StereoAxes::plane, "plane"},
                                                   {StereoAxes::cylinder, "cylinder"},
                                                   {StereoAxes::points, "points"}};
};

/// Reads the three points of StereoAxes::points from "x,y x,y x,y". Throws UsageError, whose message is a
/// sentence without full stop that goes on after the name of an option.
DIC_API std::array<Roi::Vertex, 3> parse_axes_points(const std::string& text);

struct StereoOptions {
  /// Subsets, search, noise, strain window and device, as for one camera. Strain is that of the surface. The
  /// order must be 1 or 2: a translation cannot follow a subset from one camera to the other.
  TrackOptions track;
  /// Median distance, px, of the matches of the references from their epipolar lines above which the
  /// calibration does not belong to the images.
  double largest_epipolar = 2;
  /// Corrects the pose of the right camera from the matches of the references, for a rig that has moved since
  /// its calibration. Refused if it must turn by more than a degree.
  bool correct_rig = false;
  StereoAxes axes = StereoAxes::camera;
  /// The three points for StereoAxes::points, in the left reference, px.
  std::optional<std::array<Roi::Vertex, 3>> axes_points;
  /// Subtracts the motion as a rigid body from the displacements of each frame.
  bool remove_rigid_motion = false;
  /// Returns one sentence per problem; empty if the options are valid.
  DIC_API std::vector<std::string> validate() const;
};

/// The motion of a surface as a rigid body: X is moved to centre + R (X - centre) + translation, in the axes
/// of the measurement.
struct RigidMotion {
  bool is_known = false;                   ///< false if too few points were measured
  std::array<double, 3> rotation_deg{};    ///< rotation vector of R: axis times angle
  std::array<double, 3> translation_mm{};  ///< translation of the centre
  std::array<double, 3> centre_mm{};       ///< mean position of the points in the reference
  std::array<double, 3> sigma_rotation_deg{},
      sigma_translation_mm{};  ///< standard deviations by the noise of the images
  double residual_mm = 0;      ///< root mean square of what remains: deformation and noise
  std::int64_t points = 0;     ///< number of points that it was fitted to
};

/// The measurement of one pair of images.
struct StereoFrame {
  std::int64_t index = 0;  ///< number of the pair in a StereoStream, from 0 on
  /// Field over the left reference image. u, v and their sigmas are those of the left image, zncc is the
  /// lower one of the matches of the point; `stereo` and `strain` are of the surface. A point that one of the
  /// cameras lost is NaN, with the status of that match; `epipolar` where the matches contradict the
  /// calibration.
  Field field;
  double noise_left = 0, noise_right = 0;  ///< noise of the images, grey levels
  /// Median and robust standard deviation (from the median deviation) of the distances from the epipolar
  /// lines, px of the right image.
  double epipolar_median = std::numeric_limits<double>::quiet_NaN();
  double epipolar_sd = std::numeric_limits<double>::quiet_NaN();
  RigidMotion motion;  ///< motion since the reference; subtracted if the options say so
  StageSeconds seconds;
  double geometry_seconds = 0;  ///< from the matches to positions, displacements and their sigmas
  double latency = 0;  ///< seconds from StereoStream::push to the result
  /// Why a StereoStream could not measure the pair, one sentence; empty = measured.
  std::string error;
  /// State for StereoTracker::restore; empty in the references, and without TrackOptions::keep_state.
  std::vector<std::byte> state;
};

/// Measures pairs of images against the pair of references, in constant memory. The left reference is the
/// reference of all: its subsets are matched to the later left images and to all right images.
/// The calls of one object must not overlap.
class StereoTracker {
 public:
  /// Measures the shape in the references. Throws UsageError (options, sizes, ROI, a calibration that does
  /// not belong to the images), DeviceError, Cancelled.
  DIC_API StereoTracker(const StereoOptions& options, const CameraRig& rig, ImageView left, ImageView right,
                        const Roi& roi = {}, std::stop_token stop = {});
  DIC_API ~StereoTracker();
  DIC_API StereoTracker(StereoTracker&&) noexcept;
  DIC_API StereoTracker& operator=(StereoTracker&&) noexcept;

  DIC_API const Grid& grid() const;
  /// The shape in the references; displacement and strain are 0.
  DIC_API const StereoFrame& reference() const;
  /// Measures the next pair. Throws UsageError if a size or type differs from the references, DeviceError,
  /// Cancelled.
  DIC_API StereoFrame track(ImageView left, ImageView right, std::stop_token stop = {});

  /// Reads an image of the left (0) or the right (1) camera, of the pair with this number among those that
  /// were measured; 0 is the pair of references.
  using ReadImage = std::function<Image(std::int64_t pair, int camera)>;
  /// Continues the measurement of an earlier object with the same options, calibration and references; call
  /// it before the first `track`. The next pair is measured as if the one with this StereoFrame::state had
  /// been measured just before; with the reference strategies `previous` and `auto`, which need `read`, it
  /// does not start from the shapes of that pair. Returns false if that is impossible: the state is not a
  /// valid one, or the device is a GPU, which has no states.
  DIC_API bool restore(std::span<const std::byte> state, const ReadImage& read = {});

  /// Correlation variants and SIMD targets that ran.
  DIC_API std::vector<std::string> kernels() const;
  /// How the right camera has moved since the calibration, from the matches of the references. Known if the
  /// options ask for the correction, and otherwise if the epipolar distances suggest it.
  DIC_API const std::optional<RigCorrection>& rig_correction() const;
  /// As Tracker states them.
  DIC_API std::string device() const;
  DIC_API std::string device_reason() const;
  /// Order of the subsets in right images: that of the options, or 2 instead of 1 where the surface is so
  /// curved that order 1 is less certain.
  DIC_API int order_between_cameras() const;
  /// The options, including those chosen from the reference.
  DIC_API TrackOptions options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic

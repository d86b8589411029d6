#pragma once

#include <array>
#include <cstdint>
#include <dic/camera.hpp>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Finds one camera (dic/camera.hpp) or two (dic/camera_rig.hpp) from images of a target: a plate with a
/// printed pattern of known size.
namespace dic {

enum class TargetPattern : std::uint8_t { checkerboard, circles, acircles, charuco, rings };
template <>
struct EnumNames<TargetPattern> {
  static constexpr EnumName<TargetPattern> table[] = {{TargetPattern::checkerboard, "checkerboard"},
                                                      {TargetPattern::circles, "circles"},
                                                      {TargetPattern::acircles, "acircles"},
                                                      {TargetPattern::charuco, "charuco"},
                                                      {TargetPattern::rings, "rings"}};
};

struct Target {
  TargetPattern pattern = TargetPattern::checkerboard;
  /// Size of the pattern, at least 3. checkerboard: inner corners, one less than squares. circles: centres.
  /// acircles (every other row is shifted by half a distance): centres per row, rows. charuco: squares.
  /// rings (a grid of dots, three of them rings, as VIC-3D and DICe use): 0, because dots are counted from
  /// the ring in the corner of the right angle; columns run towards the ring that is more dots away.
  int columns = 0, rows = 0;
  /// Side of a square; circles: distance of centres; acircles: distance of rows, which is half the distance
  /// of centres in a row.
  double square_mm = 0;
  double marker_mm = 0;               ///< charuco: side of a marker, below that of a square
  std::string dictionary = "4X4_50";  ///< charuco: dictionary of the markers, as in OpenCV without DICT_
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// A corner or centre of the target.
struct TargetPoint {
  double mm_x = 0, mm_y = 0;  ///< position on the target
  double x = 0, y = 0;        ///< position in the image, px
  double area = 0;            ///< area of a circle in the image, px^2; 0 = a corner
};
/// Finds the points of the target in an image; leaves out corners at the border of the image. Empty: the
/// target was not found (only charuco and rings may be partly hidden). Throws UsageError for an invalid
/// target.
DIC_API std::vector<TargetPoint> find_target(ImageView image, const Target& target);

/// The parameters of the distortion that are estimated; the others are 0.
enum class LensModel : std::uint8_t {
  k1,       ///< k1: for few images, or a small distortion
  k1k2,     ///< k1, k2
  brown,    ///< k1, k2, k3, p1, p2
  rational  ///< all: for wide angles
};
template <>
struct EnumNames<LensModel> {
  static constexpr EnumName<LensModel> table[] = {{LensModel::k1, "k1"},
                                                  {LensModel::k1k2, "k1k2"},
                                                  {LensModel::brown, "brown"},
                                                  {LensModel::rational, "rational"}};
};

/// The outcome for one image of the target.
struct CalibrationImage {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string file;
  std::vector<TargetPoint> points;
  /// Seen minus predicted position of each point, px; empty if the image was not used.
  std::vector<Camera::Point> residuals;
  double rms = kNone;   ///< root mean square length of the residuals, px
  std::string problem;  ///< why it was not used, one sentence; empty = it was
};

struct PlaneFit {
  CalibrationImage image;
  double rms_mm = 0;
  /// Angle between the plane's normal and the optical axis, degrees; NaN without a lens.
  double tilt_deg = CalibrationImage::kNone;
  /// Distance of the plane from the camera along the optical axis; NaN without a lens.
  double distance_mm = CalibrationImage::kNone;
};

struct CalibrationJob {
  std::vector<std::string>
      images;         ///< images for the lens (files, globs, directories): at least 3, better 15
  std::string plane;  ///< an image of the target on the specimen's surface; empty = none
  /// A camera whose lens is already known; `images` must then be empty.
  std::optional<CameraParameters> camera;
  Target target;
  LensModel model = LensModel::brown;
  int threads = 0;  ///< 0 = one per core
  DIC_API std::vector<std::string> validate() const;
};

struct Calibration {
  CameraParameters camera;
  LensModel model = LensModel::brown;
  Target target;
  double rms = CalibrationImage::kNone;  ///< root mean square residual over all points of the images used for
                                         ///< the lens, px
  /// Standard deviations of the lens parameters, from the residuals; none if the lens was given.
  std::optional<Lens> deviations;
  std::vector<CalibrationImage> images;
  double coverage = 0;  ///< share of the image inside the convex hull of all points
  std::optional<PlaneFit> plane;
  std::vector<std::string> warnings;  ///< one sentence each
};

/// Finds the lens by the method of Zhang, "A flexible new technique for camera calibration" (2000), with
/// OpenCV's calibrateCamera. Leaves out images that contradict the others: those whose residuals exceed three
/// times the median, or without which the residuals of all others halve. Without images and without a known
/// lens, the image of the plane alone gives homography and scale. Throws UsageError, FileError (unreadable,
/// too few with a target, images of different sizes).
DIC_API Calibration calibrate(const CalibrationJob& job);

struct StereoCalibrationJob {
  std::vector<std::string> left, right;  ///< images, in pairs by their order: at least 3, better 15
  Target target;
  LensModel model = LensModel::brown;
  /// Distance, as measured with a caliper, of the outermost points in a row of the target: `columns` corners
  /// or circles; 0 = not measured.
  double check_distance_mm = 0;
  int threads = 0;  ///< 0 = one per core
  DIC_API std::vector<std::string> validate() const;
};

/// A target that both cameras saw.
struct CalibrationPair {
  CalibrationImage left, right;
  double epipolar_px = CalibrationImage::kNone;  ///< root mean square distance from the epipolar lines
  std::string problem;                           ///< why it was not used, one sentence; empty = it was
};

struct StereoCalibration {
  CameraRig rig;
  LensModel model = LensModel::brown;
  Target target;
  double rms = CalibrationImage::kNone;  ///< root mean square residual over all points of both cameras, px
  std::vector<CalibrationPair> pairs;
  std::array<double, 2> coverage = {};  ///< share of each camera's image inside the hull of its points
  double angle_deg = 0;                 ///< between the optical axes
  double baseline_mm = 0;               ///< distance of the cameras
  double check_distance_mm = 0;         ///< of the job
  /// The same distance as the calibration sees it: mean over all pairs; NaN if not asked for.
  double found_distance_mm = CalibrationImage::kNone;
  /// Root mean square distance of the target's points from their regular places, where the images of at least
  /// 5 pairs showed that it is irregular, and the places were fitted as well; else 0.
  double target_error_mm = 0;
  std::vector<std::string> warnings;  ///< one sentence each
};

/// Finds both lenses and the pose of the right camera in the left one's axes from pairs of images of a target
/// that was moved in front of both: a bundle adjustment over all points of both cameras. Centroids of circles
/// are corrected for perspective. Leaves out pairs that contradict the others, and turns the numbering of
/// points by 180 degrees where a target looks the same from two sides. Throws UsageError, FileError
/// (unreadable, too few pairs with a target, images of different sizes, pairs that are mixed up).
DIC_API StereoCalibration calibrate_stereo(const StereoCalibrationJob& job);

/// Everything but the rig itself, as a JSON object for write_camera_rig.
DIC_API std::string calibration_json(const StereoCalibration& calibration, const std::string& command);

/// Draws a pair of images with some points of the target in the left one and their epipolar lines in the
/// right one, and writes a PNG. Throws FileError.
DIC_API void write_epipolar_picture(const std::filesystem::path& path, const StereoCalibration& calibration);

/// Everything but the camera itself, as a JSON object for write_camera.
DIC_API std::string calibration_json(const Calibration& calibration, const std::string& command);

/// Draws the residuals as enlarged lines at their positions in the image, a colour for each image, and writes
/// a PNG. Throws FileError.
DIC_API void write_residual_picture(const std::filesystem::path& path, const Calibration& calibration);

}  // namespace dic

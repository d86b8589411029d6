#pragma once

#include <cstdint>
#include <dic/camera.hpp>
#include <dic/image.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Finds the camera (dic/camera.hpp) from images of a target: a plate with a printed pattern of known size.
namespace dic {

enum class TargetPattern : std::uint8_t { checkerboard, circles, acircles, charuco };
template <>
struct EnumNames<TargetPattern> {
  static constexpr EnumName<TargetPattern> table[] = {{TargetPattern::checkerboard, "checkerboard"},
                                                      {TargetPattern::circles, "circles"},
                                                      {TargetPattern::acircles, "acircles"},
                                                      {TargetPattern::charuco, "charuco"}};
};

struct Target {
  TargetPattern pattern = TargetPattern::checkerboard;
  /// checkerboard: inner corners, one less than squares. circles: centres. acircles (rows shifted by half a
  /// distance, in turn): centres of a row, rows. charuco: squares. At least 3.
  int columns = 0, rows = 0;
  /// Side of a square; circles: between centres; acircles: between rows, which is half the distance in a row.
  double square_mm = 0;
  double marker_mm = 0;               ///< charuco: side of a marker, below that of a square
  std::string dictionary = "4X4_50";  ///< charuco: of the markers, as OpenCV names it after DICT_
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// A corner or centre of the target.
struct TargetPoint {
  double mm_x = 0, mm_y = 0;  ///< on the target
  double x = 0, y = 0;        ///< in the image, px
};
/// The points of the target that the image shows; corners at its border are left out. Empty: the target was
/// not found (only of charuco a part may be hidden). Throws UsageError for a target with problems.
std::vector<TargetPoint> find_target(ImageView image, const Target& target);

/// Which parameters of the distortion are estimated; the others are 0.
enum class LensModel : std::uint8_t {
  k1,       ///< k1: few images, or a small distortion
  k1k2,     ///< k1, k2
  brown,    ///< k1, k2, k3, p1, p2
  rational  ///< all: wide angles
};
template <>
struct EnumNames<LensModel> {
  static constexpr EnumName<LensModel> table[] = {{LensModel::k1, "k1"},
                                                  {LensModel::k1k2, "k1k2"},
                                                  {LensModel::brown, "brown"},
                                                  {LensModel::rational, "rational"}};
};

/// What became of one image of the target.
struct CalibrationImage {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string file;
  std::vector<TargetPoint> points;
  /// Seen minus predicted position of each point, px; empty where the image was not used.
  std::vector<Camera::Point> residuals;
  double rms = kNone;   ///< of the residuals' lengths, px
  std::string problem;  ///< why it was not used, one sentence; empty = it was
};

struct PlaneFit {
  CalibrationImage image;
  double rms_mm = 0;
  /// Of the plane's normal against the optical axis; NaN without a lens.
  double tilt_deg = CalibrationImage::kNone;
  /// From the camera along the optical axis; NaN without a lens.
  double distance_mm = CalibrationImage::kNone;
};

struct CalibrationJob {
  std::vector<std::string> images;  ///< files, globs, directories; for the lens: 3 or more, better 15
  std::string plane;                ///< an image of the target on the specimen's surface; empty = none
  /// With a lens that is known already; then `images` is empty.
  std::optional<CameraParameters> camera;
  Target target;
  LensModel model = LensModel::brown;
  int threads = 0;  ///< 0 = one per core
  std::vector<std::string> validate() const;
};

struct Calibration {
  CameraParameters camera;
  LensModel model = LensModel::brown;
  Target target;
  double rms = CalibrationImage::kNone;  ///< over all points of the images used for the lens, px
  /// Standard deviations of the lens's parameters, from the residuals; none where it was known.
  std::optional<Lens> deviations;
  std::vector<CalibrationImage> images;
  double coverage = 0;  ///< share of the image in the hull of all points
  std::optional<PlaneFit> plane;
  std::vector<std::string> warnings;  ///< one sentence each
};

/// Lens by Zhang, "A flexible new technique for camera calibration" (2000), with OpenCV's calibrateCamera.
/// Images that do not fit the others are left out: their residuals are more than three times the median, or
/// those of all others halve without them. Without images and without a known lens, the plane's image alone
/// gives homography and scale. Throws UsageError, FileError (unreadable, too few with a target, images of
/// different sizes).
Calibration calibrate(const CalibrationJob& job);

/// All of it but the camera itself, as a JSON object: for write_camera.
std::string calibration_json(const Calibration& calibration, const std::string& command);

/// The residuals as lines, enlarged, where they are in the image, a colour for each image; PNG. Throws
/// FileError.
void write_residual_picture(const std::filesystem::path& path, const Calibration& calibration);

}  // namespace dic

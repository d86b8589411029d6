#pragma once

#include <array>
#include <dic/camera.hpp>
#include <dic/export.hpp>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

/// Cameras that look at one specimen from several directions: lenses and poses in one world.
namespace dic {

/// A camera of a rig. A point X of the world, mm, has the position rotation X + translation in the axes of the
/// camera (x to the right, y down, z along the optical axis), as in OpenCV.
struct RigCamera {
  CameraParameters camera;  ///< with a lens; without a plane
  std::array<double, 9> rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< row by row
  std::array<double, 3> translation_mm = {0, 0, 0};
};

/// The first camera is the left one, and its axes are those of the world: its pose is the identity. So with two
/// cameras X_right = R X_left + T, with R and T of cameras[1].
struct CameraRig {
  std::vector<RigCamera> cameras;
  /// Root mean square distance of the calibration's points from their epipolar lines, px; NaN if not known.
  double epipolar_px = std::numeric_limits<double>::quiet_NaN();
  /// Covariance of rig_parameters(), row by row; empty if not known.
  std::vector<double> covariance;
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// Parameters of a rig in the order of its covariance: for each camera fx, fy, cx, cy, k1, k2, p1, p2, k3, k4,
/// k5, k6, and for each camera but the first its rotation vector relative to the stored rotation (rad, in the
/// axes of the camera: R = exp(w) R_stored) and its translation, mm.
DIC_API std::vector<std::string> rig_parameter_names(std::size_t cameras);

/// Reads a stereo file, or the calibration of another program, recognised by its content (docs/file-formats.md).
/// image: size of the images, where the file does not say it. Throws FileError.
DIC_API CameraRig read_camera_rig(const std::filesystem::path& path, Size image = {});
/// The text of a stereo file. calibration: a JSON object that says how the rig was found; may be empty.
DIC_API std::string camera_rig_json(const CameraRig& rig, const std::string& calibration = {});
/// Writes a stereo file: temporary name, then rename. Throws FileError.
DIC_API void write_camera_rig(const std::filesystem::path& path, const CameraRig& rig,
                              const std::string& calibration = {});

}  // namespace dic

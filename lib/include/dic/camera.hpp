#pragma once

#include <array>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The camera that took the images: maps pixels to the positions that they would have without lens distortion
/// and perspective. It is applied to coordinates; images are never resampled.
namespace dic {

/// The lens: focal lengths, principal point, distortion (Brown, "Decentering distortion of lenses", 1966;
/// radial terms as in Conrady 1919), with the parameters of OpenCV. A direction (a, b), r^2 = a^2 + b^2, is
/// seen at the pixel x = fx A + skew B + cx, y = fy B + cy with
///   q = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)
///   A = a q + 2 p1 a b + p2 (r^2 + 2 a^2)
///   B = b q + p1 (r^2 + 2 b^2) + 2 p2 a b
/// Ideal pixels are those of a lens without distortion: (fx a + cx, fy b + cy).
struct Lens {
  double fx = 0, fy = 0, cx = 0, cy = 0;  ///< px
  double k1 = 0, k2 = 0, p1 = 0, p2 = 0, k3 = 0, k4 = 0, k5 = 0, k6 = 0;
  /// Shear of the pixel rows, px. Never estimated by dic, but other programs' calibrations have it.
  double skew = 0;
};

/// The plane of the specimen's surface: the homography, row-major, from (X, Y, 1) in the plane, mm, to ideal
/// pixels.
struct SpecimenPlane {
  std::array<double, 9> px_from_mm = {1, 0, 0, 0, 1, 0, 0, 0, 1};
};

struct CameraParameters {
  Size image;                          ///< size of the images that the camera takes, px
  std::optional<Lens> lens;            ///< none: no distortion
  std::optional<SpecimenPlane> plane;  ///< none: no perspective, no scale
  /// One sentence per problem; empty when all is well. Checks that the maps of the camera exist and are
  /// invertible everywhere in the image.
  DIC_API std::vector<std::string> validate() const;
};

/// Maps between image pixels and corrected pixels. Corrected pixels are those of an ideal camera that looks
/// at the specimen's plane perpendicularly, so they are proportional to mm in the plane. In the middle of the
/// image they agree with image pixels: same position, same area, no rotation between their axes. Without a
/// plane, corrected pixels are ideal pixels.
class Camera {
 public:
  struct Point {
    double x = 0, y = 0;  ///< px
  };
  /// Derivatives of corrected by image coordinates: dX/dx, dX/dy, dY/dx, dY/dy.
  struct Jacobian {
    double xx = 1, xy = 0, yx = 0, yy = 1;
  };

  /// Throws UsageError for parameters with problems.
  DIC_API explicit Camera(const CameraParameters& parameters);

  const CameraParameters& parameters() const { return parameters_; }
  /// mm per corrected pixel; 0 without a plane.
  double scale_mm_per_px() const { return scale_; }

  /// Corrected position of the image pixel (x, y), accurate to 1e-9 px. NaN where the model has no inverse,
  /// which never happens inside the image.
  DIC_API Point undistort(double x, double y) const;
  struct Corrected {
    Point position;
    Jacobian jacobian;
  };
  /// Corrected position of the image pixel (x, y), with its derivative.
  DIC_API Corrected undistort_with_jacobian(double x, double y) const;
  /// Image position, px, of a corrected position: the inverse of `undistort`.
  DIC_API Point distort(double x, double y) const;

 private:
  CameraParameters parameters_;
  std::array<double, 9> corrected_from_ideal_, ideal_from_corrected_;
  double scale_ = 0;
};

/// Positions of a grid's nodes in corrected coordinates, [ny x nx], px. threads: 0 = one per core.
DIC_API NodePositions corrected_nodes(const Grid& grid, const Camera& camera, int threads = 0);
/// Converts a field measured in image pixels to corrected coordinates, px. With U = undistort, the
/// displacement becomes U(x + u, y + v) - U(x, y), and sigma follows by the Jacobian of U at (x + u, y + v).
/// Keeps the displacement in the image as `Field::image_u`, `image_v`. Clears the strain; compute_strain then
/// gives the strain of the corrected field. A point that left the camera's image is out_of_image if U is
/// undefined there. nodes: corrected_nodes() of this grid and camera. Throws UsageError for a field that is
/// already corrected, or nodes of another grid.
DIC_API void correct_field(Field& field, const Camera& camera, std::shared_ptr<const NodePositions> nodes,
                           int threads = 0);

/// Reads a camera file (docs/file-formats.md). Throws FileError: unreadable, not a camera file, a key that is
/// missing, unknown or invalid, another version, parameters with problems (CameraParameters::validate).
DIC_API Camera read_camera(const std::filesystem::path& path);
/// Parses the text of a camera file. Throws UsageError for the same problems.
DIC_API Camera parse_camera(const std::string& text);
/// The text of a camera file. calibration: a JSON object that says how the camera was found and that readers
/// skip; may be empty.
DIC_API std::string camera_json(const CameraParameters& camera, const std::string& calibration = {});
/// Writes a camera file: temporary name, then rename. Throws FileError.
DIC_API void write_camera(const std::filesystem::path& path, const CameraParameters& camera,
                          const std::string& calibration = {});

}  // namespace dic

#pragma once

#include <array>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The camera that took the images: where what is seen at a pixel would lie without lens distortion and
/// perspective. It is applied to coordinates; images are never resampled.
namespace dic {

/// The lens: focal lengths, principal point, distortion (Brown, "Decentering distortion of lenses", 1966;
/// radial terms as in Conrady 1919), with the parameters of OpenCV. A direction (a, b), r^2 = a^2 + b^2, is
/// seen at x = fx A + cx, y = fy B + cy with
///   q = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)
///   A = a q + 2 p1 a b + p2 (r^2 + 2 a^2)
///   B = b q + p1 (r^2 + 2 b^2) + 2 p2 a b
/// Ideal pixels are what a lens without distortion would show: (fx a + cx, fy b + cy).
struct Lens {
  double fx = 0, fy = 0, cx = 0, cy = 0;  ///< px
  double k1 = 0, k2 = 0, p1 = 0, p2 = 0, k3 = 0, k4 = 0, k5 = 0, k6 = 0;
};

/// The surface of the specimen: the homography, row-major, from its plane (X, Y, 1), mm, to ideal pixels.
struct SpecimenPlane {
  std::array<double, 9> px_from_mm = {1, 0, 0, 0, 1, 0, 0, 0, 1};
};

struct CameraParameters {
  Size image;                          ///< px, of the images that the camera takes
  std::optional<Lens> lens;            ///< none: no distortion
  std::optional<SpecimenPlane> plane;  ///< none: no perspective, no scale
  /// One sentence per problem; empty when all is well. Checks that the maps of a camera exist, and can be
  /// undone, everywhere in the image.
  std::vector<std::string> validate() const;
};

/// Maps between image pixels and corrected ones. Corrected pixels are those of an ideal camera that looks at
/// the specimen's plane perpendicularly: proportional to mm in it. In the middle of the image they are the
/// same as image pixels: the same place, the same area, no rotation between their axes. Without a plane they
/// are ideal pixels.
class Camera {
 public:
  struct Point {
    double x = 0, y = 0;  ///< px
  };
  /// Of corrected coordinates by image coordinates: d(X)/d(x), d(X)/d(y), d(Y)/d(x), d(Y)/d(y).
  struct Jacobian {
    double xx = 1, xy = 0, yx = 0, yy = 1;
  };

  /// Throws UsageError for parameters with problems.
  explicit Camera(const CameraParameters& parameters);

  const CameraParameters& parameters() const { return parameters_; }
  /// mm per corrected pixel; 0 without a plane.
  double scale_mm_per_px() const { return scale_; }

  /// Corrected position of what is seen at (x, y), to 1e-9 px. NaN where nothing can be seen there by this
  /// model: never inside the image.
  Point undistort(double x, double y) const;
  struct Corrected {
    Point position;
    Jacobian jacobian;
  };
  /// The same with its derivative.
  Corrected undistort_with_jacobian(double x, double y) const;
  /// Where what has this corrected position is seen.
  Point distort(double x, double y) const;

 private:
  CameraParameters parameters_;
  std::array<double, 9> corrected_from_ideal_, ideal_from_corrected_;
  double scale_ = 0;
};

/// The nodes of a grid in corrected coordinates. threads: 0 = one per core.
NodePositions corrected_nodes(const Grid& grid, const Camera& camera, int threads = 0);
/// Brings what was measured in image pixels into corrected coordinates, px: displacement U(x + u, y + v) -
/// U(x, y), sigma by the Jacobian of U at (x + u, y + v). Keeps the displacement in the image as
/// `Field::image_u`, `image_v`. The strain becomes empty: compute_strain then gives that of the corrected
/// field. A point that left the camera's image is out_of_image where U is not defined. nodes: of this grid
/// and camera. Throws UsageError for a field that is corrected already, or nodes of another grid.
void correct_field(Field& field, const Camera& camera, std::shared_ptr<const NodePositions> nodes,
                   int threads = 0);

/// Reads a camera file (docs/file-formats.md). Throws FileError: unreadable, not a camera, a key that is
/// missing, unknown or wrong, another version, maps that do not exist.
Camera read_camera(const std::filesystem::path& path);
/// The same from the text of such a file. Throws UsageError.
Camera parse_camera(const std::string& text);
/// The text of a camera file. calibration: how the camera was found, a JSON object that readers skip; or
/// empty.
std::string camera_json(const CameraParameters& camera, const std::string& calibration = {});
/// The same into a file: temporary name, then rename. Throws FileError.
void write_camera(const std::filesystem::path& path, const CameraParameters& camera,
                  const std::string& calibration = {});

}  // namespace dic

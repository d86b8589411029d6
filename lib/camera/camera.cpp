#include <algorithm>
#include <cmath>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <limits>

#include "camera/lens.hpp"

namespace dic {
namespace {

using camera::Mapped;
using camera::Point;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<double, 9> kIdentity = {1, 0, 0, 0, 1, 0, 0, 0, 1};

Point middle_of(Size image) { return {(image.width - 1) / 2.0, (image.height - 1) / 2.0}; }

std::optional<Point> ideal_of(const CameraParameters& p, Point seen) {
  return p.lens ? camera::undistort(*p.lens, seen) : seen;
}

/// The homography from ideal pixels to mm, signed so that its last coordinate is positive in the image.
std::array<double, 9> mm_from_ideal(const CameraParameters& p, Point ideal_middle) {
  std::array<double, 9> h = camera::inverse(p.plane->px_from_mm);
  const double w = h[6] * ideal_middle.x + h[7] * ideal_middle.y + h[8];
  if (w < 0)
    for (double& value : h) value = -value;
  return h;
}

/// Maps ideal pixels to mm; the Jacobian is with respect to image pixels.
struct ToPlane {
  const CameraParameters& parameters;
  std::array<double, 9> mm_from_ideal;

  Mapped operator()(Point ideal) const {
    Mapped mapped = camera::project(mm_from_ideal, ideal);
    if (parameters.lens)
      mapped.jacobian = camera::product(mapped.jacobian,
                                        camera::inverse(camera::distort(*parameters.lens, ideal).jacobian));
    return mapped;
  }
};

/// The similarity from mm to corrected pixels that leaves the middle of the image at its place. middle: the
/// middle of the image in mm.
std::array<double, 9> corrected_from_mm(Point image_middle, const Mapped& middle, double mm_per_px) {
  // The rotation whose product with the Jacobian is symmetric, from its polar decomposition.
  const auto& j = middle.jacobian;
  const double angle = std::atan2(j.xy - j.yx, j.xx + j.yy);
  const double c = std::cos(angle) / mm_per_px, s = std::sin(angle) / mm_per_px;
  const auto [x, y] = middle.point;
  return {c, -s, image_middle.x - c * x + s * y, s, c, image_middle.y - s * x - c * y, 0, 0, 1};
}

bool finite(const CameraParameters& p) {
  double sum = 0;
  if (p.lens)
    for (const camera::LensParameter& parameter : camera::kLensParameters) sum += (*p.lens).*parameter.value;
  if (p.plane)
    for (const double value : p.plane->px_from_mm) sum += value;
  return std::isfinite(sum);
}

/// Why the maps fail somewhere in the image: one sentence, or empty if they do not fail.
std::string problem_of_maps(const CameraParameters& p) {
  const auto middle = ideal_of(p, middle_of(p.image));
  constexpr const char* kFolded =
      "The lens distortion cannot be undone everywhere in the image: its parameters describe a lens that "
      "folds the image; calibrate again with targets up to the corners, or with fewer parameters.";
  if (!middle) return kFolded;
  constexpr int kParts = 32;
  for (int j = 0; j <= kParts; ++j)
    for (int i = 0; i <= kParts; ++i) {
      const Point seen = {(p.image.width - 1.0) * i / kParts, (p.image.height - 1.0) * j / kParts};
      const auto ideal = ideal_of(p, seen);
      if (!ideal) return kFolded;
      if (!p.plane) continue;
      const Mapped mapped = ToPlane{p, mm_from_ideal(p, *middle)}(*ideal);
      if (std::isnan(mapped.point.x))
        return "The plane of the specimen reaches its horizon within the image: it is tilted too much.";
      if (!(camera::determinant(mapped.jacobian) > 0))
        return "The plane of the specimen is seen from behind: the image or the target is mirrored.";
    }
  return {};
}

}  // namespace

std::vector<std::string> CameraParameters::validate() const {
  if (image.width < 2 || image.height < 2) return {"The size of the camera's images must be given, in px."};
  if (!finite(*this)) return {"Every number of a camera must be finite."};
  if (lens && !(lens->fx > 0 && lens->fy > 0)) return {"Focal lengths must be positive, in px."};
  if (plane && camera::determinant(plane->px_from_mm) == 0)
    return {"The homography of the specimen's plane has no inverse."};
  if (const std::string problem = problem_of_maps(*this); !problem.empty()) return {problem};
  return {};
}

Camera::Camera(const CameraParameters& parameters)
    : parameters_(parameters), corrected_from_ideal_(kIdentity), ideal_from_corrected_(kIdentity) {
  if (const auto problems = parameters.validate(); !problems.empty()) throw UsageError(problems.front());
  if (!parameters.plane) return;
  const Point seen = middle_of(parameters.image), ideal = *ideal_of(parameters, seen);
  const ToPlane to_plane{parameters, mm_from_ideal(parameters, ideal)};
  const Mapped middle = to_plane(ideal);
  scale_ = std::sqrt(camera::determinant(middle.jacobian));
  corrected_from_ideal_ = camera::product(corrected_from_mm(seen, middle, scale_), to_plane.mm_from_ideal);
  ideal_from_corrected_ = camera::inverse(corrected_from_ideal_);
}

Camera::Point Camera::undistort(double x, double y) const {
  const auto ideal = ideal_of(parameters_, {x, y});
  if (!ideal) return {kMissing, kMissing};
  return parameters_.plane ? camera::project(corrected_from_ideal_, *ideal).point : *ideal;
}

Camera::Point Camera::distort(double x, double y) const {
  Point ideal = {x, y};
  if (parameters_.plane) ideal = camera::project(ideal_from_corrected_, ideal).point;
  return parameters_.lens ? camera::distort(*parameters_.lens, ideal).point : ideal;
}

Camera::Corrected Camera::undistort_with_jacobian(double x, double y) const {
  const auto ideal = ideal_of(parameters_, {x, y});
  if (!ideal) return {{kMissing, kMissing}, {kMissing, kMissing, kMissing, kMissing}};
  auto [position, jacobian] = camera::project(corrected_from_ideal_, *ideal);
  if (parameters_.lens)
    jacobian =
        camera::product(jacobian, camera::inverse(camera::distort(*parameters_.lens, *ideal).jacobian));
  return {position, jacobian};
}

}  // namespace dic

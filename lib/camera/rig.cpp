#include "camera/rig.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "camera/lens.hpp"

namespace dic {
namespace {

constexpr double kRotationTolerance = 1e-6;

bool is_finite(const auto& numbers) {
  return std::ranges::all_of(numbers, [](double value) { return std::isfinite(value); });
}

/// "left" and "right", or the number of the camera in a rig of more than two.
std::string name_of(std::size_t index, std::size_t cameras) {
  if (cameras > 2) return "camera " + std::to_string(index);
  return index == 0 ? "left camera" : "right camera";
}

std::string problem_of_pose(const RigCamera& camera, bool is_first) {
  if (!is_finite(camera.rotation) || !is_finite(camera.translation_mm))
    return "Every number of its rotation and translation must be finite.";
  if (camera::rotation_error(camera.rotation) > kRotationTolerance ||
      camera::determinant(camera.rotation) < 0)
    return "Its rotation matrix is no rotation: its rows must be perpendicular unit vectors.";
  const double baseline =
      std::hypot(camera.translation_mm[0], camera.translation_mm[1], camera.translation_mm[2]);
  const std::array<double, 9> identity = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  if (is_first && (camera.rotation != identity || baseline != 0))
    return "The axes of the first camera are those of the world: it needs no rotation and no translation.";
  if (!is_first && baseline == 0)
    return "It stands where the left one stands: a depth needs two cameras some distance apart.";
  return {};
}

std::string problem_of_covariance(const CameraRig& rig) {
  const std::size_t n = rig_parameter_names(rig.cameras.size()).size();
  if (rig.covariance.empty()) return {};
  if (rig.covariance.size() != n * n)
    return "The covariance of the calibration needs " + std::to_string(n) + " rows of " + std::to_string(n) +
           " numbers.";
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double a = rig.covariance[i * n + j], b = rig.covariance[j * n + i];
      const double size = std::sqrt(std::abs(rig.covariance[i * n + i] * rig.covariance[j * n + j]));
      const bool holds = std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= 1e-9 * size &&
                         std::abs(a) <= size * (1 + 1e-9) && rig.covariance[i * n + i] >= 0;
      if (!holds) return "The covariance of the calibration is none: it must be symmetric and positive.";
    }
  return {};
}

}  // namespace

std::vector<std::string> CameraRig::validate() const {
  if (cameras.size() < 2) return {"A rig needs two cameras."};
  std::vector<std::string> list;
  for (std::size_t k = 0; k < cameras.size(); ++k) {
    const std::string where = "In the " + name_of(k, cameras.size()) + ": ";
    const auto problems = cameras[k].camera.validate();
    for (const std::string& problem : problems) list.push_back(where + problem);
    if (problems.empty() && !cameras[k].camera.lens) list.push_back(where + "The lens is missing.");
    if (cameras[k].camera.plane)
      list.push_back(where + "A plane of the specimen is for one camera alone: leave it out.");
    if (const auto problem = problem_of_pose(cameras[k], k == 0); !problem.empty())
      list.push_back(where + problem);
  }
  if (epipolar_px < 0 || std::isinf(epipolar_px))
    list.emplace_back("The distance from the epipolar lines must be a number of px, 0 or more.");
  if (const auto problem = problem_of_covariance(*this); !problem.empty()) list.push_back(problem);
  return list;
}

std::vector<std::string> rig_parameter_names(std::size_t cameras) {
  std::vector<std::string> names;
  const auto name = [&](std::size_t camera, const char* parameter) {
    names.push_back("camera" + std::to_string(camera) + "_" + parameter);
  };
  for (std::size_t k = 0; k < cameras; ++k)
    for (std::size_t i = 0; i < camera::kEstimableParameters; ++i) name(k, camera::kLensParameters[i].name);
  for (std::size_t k = 1; k < cameras; ++k)
    for (const char* parameter : {"wx", "wy", "wz", "tx", "ty", "tz"}) name(k, parameter);
  return names;
}

namespace camera {

double rotation_error(const std::array<double, 9>& r) {
  double worst = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double dot = r[3 * i] * r[3 * j] + r[3 * i + 1] * r[3 * j + 1] + r[3 * i + 2] * r[3 * j + 2];
      worst = std::max(worst, std::abs(dot - (i == j ? 1 : 0)));
    }
  return worst;
}

std::array<double, 9> transposed(const std::array<double, 9>& m) {
  return {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]};
}

std::array<double, 3> product(const std::array<double, 9>& m, const std::array<double, 3>& v) {
  return {m[0] * v[0] + m[1] * v[1] + m[2] * v[2], m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
          m[6] * v[0] + m[7] * v[1] + m[8] * v[2]};
}

}  // namespace camera
}  // namespace dic

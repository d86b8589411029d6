#include "stereo/epipolar_line.hpp"

#include <algorithm>
#include <cmath>

namespace dic::stereo {
namespace {

/// Adds the image of a direction if the image contains it. The model of a lens may fold what lies outside.
void add(const LensTerms& lens, Size image, const Vector3& direction, std::vector<track::Place>& places) {
  if (!(direction[2] > 0)) return;
  const SeenPixel seen = distorted(lens, lens.cx + lens.fx * direction[0] / direction[2],
                                   lens.cy + lens.fy * direction[1] / direction[2]);
  const bool is_folded = !(seen.slope(0, 0) > 0 && determinant(seen.slope) > 0);
  if (is_folded || seen.x < 0 || seen.y < 0 || seen.x > image.width - 1 || seen.y > image.height - 1) return;
  places.push_back({seen.x, seen.y});
}

}  // namespace

std::vector<track::Place> epipolar_line(const CameraPair& cameras, Size right, double x, double y,
                                        double spacing) {
  const Sight sight = sight_of(cameras.left, x, y);
  if (!sight.exists()) return {};
  // Seen from the right camera, the left ray begins at the left camera and ends at infinity.
  const Vector3 begin = (1 / norm(cameras.translation)) * cameras.translation;
  const Vector3 ray = cameras.rotation * sight.direction(), normal = cross(begin, ray);
  const Vector3 beside = (1 / norm(normal)) * cross(normal, begin);
  const double step = spacing / std::max(cameras.right.fx, cameras.right.fy);
  std::vector<track::Place> places;
  for (double angle = std::atan2(norm(normal), dot(begin, ray)); angle > 0;) {
    const Vector3 direction = std::cos(angle) * begin + std::sin(angle) * beside;
    add(cameras.right, right, direction, places);
    // Equal angles are further apart in the image, the further they are from its middle.
    angle -= step * std::clamp(direction[2] * direction[2], 0.1, 1.0);
  }
  return places;
}

}  // namespace dic::stereo

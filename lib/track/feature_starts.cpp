#include "track/feature_starts.hpp"

#include <algorithm>
#include <limits>

namespace dic::track {
namespace {

/// Finds the motion nearest to a position, among those less than `reach` px away along each axis.
class NearestMotion {
 public:
  NearestMotion(const std::vector<features::LocalMotion>& motions, Size image, int reach)
      : reach_(reach),
        columns_(image.width / reach + 1),
        rows_(image.height / reach + 1),
        cells_(columns_ * rows_) {
    for (const features::LocalMotion& motion : motions)
      cells_[cell(motion.y, rows_) * columns_ + cell(motion.x, columns_)].push_back(&motion);
  }

  /// The nearest motion; null if none is near.
  const features::LocalMotion* at(double x, double y) const {
    const features::LocalMotion* nearest = nullptr;
    double least = static_cast<double>(reach_) * reach_;
    const int column = cell(x, columns_), row = cell(y, rows_);
    for (int j = std::max(0, row - 1); j <= std::min(rows_ - 1, row + 1); ++j)
      for (int i = std::max(0, column - 1); i <= std::min(columns_ - 1, column + 1); ++i)
        for (const features::LocalMotion* motion : cells_[j * columns_ + i]) {
          const double dx = motion->x - x, dy = motion->y - y, distance = dx * dx + dy * dy;
          if (distance >= least) continue;
          least = distance;
          nearest = motion;
        }
    return nearest;
  }

 private:
  int cell(double at, int count) const { return std::clamp(static_cast<int>(at) / reach_, 0, count - 1); }

  int reach_, columns_, rows_;
  std::vector<std::vector<const features::LocalMotion*>> cells_;
};

/// A mask that is not zero in the subsets of the points.
Image wanted_pixels(const LostPoints& lost, int radius, Size image) {
  Image out(image, ScalarType::u8);
  for (std::size_t k = 0; k < lost.points.size(); ++k) {
    const int left = std::max(0, lost.x[k] - radius), right = std::min(image.width - 1, lost.x[k] + radius);
    // Neighbouring points fill the other rows; only at the edge of the lost area some stay empty.
    for (const int y : {lost.y[k] - radius, lost.y[k], lost.y[k] + radius})
      if (y >= 0 && y < image.height)
        std::fill(out.row<std::uint8_t>(y) + left, out.row<std::uint8_t>(y) + right + 1, std::uint8_t{255});
  }
  return out;
}

bool inside(const ShapeParameters& shape, int x, int y, Size image) {
  return x + shape.u >= 0 && y + shape.v >= 0 && x + shape.u <= image.width - 1 &&
         y + shape.v <= image.height - 1;
}

}  // namespace

std::vector<FeatureStart> starts_from_features(const LostPoints& lost, const RefineOptions& options,
                                               features::MotionFinder& finder, Size reference, Size current,
                                               Stretch stretch) {
  const int radius = options.subset / 2;
  const std::vector<features::LocalMotion> motions =
      finder.find(wanted_pixels(lost, radius, reference), stretch);
  const NearestMotion nearest(motions, reference, 4 * radius + 1);
  std::vector<FeatureStart> out;
  for (std::size_t k = 0; k < lost.points.size(); ++k) {
    const features::LocalMotion* motion = nearest.at(lost.x[k], lost.y[k]);
    if (!motion) continue;
    ShapeParameters shape = extrapolated(motion->shape, lost.x[k] - motion->x, lost.y[k] - motion->y);
    if (options.order == 0) shape = {.u = shape.u, .v = shape.v};
    if (inside(shape, lost.x[k], lost.y[k], current)) out.push_back({lost.points[k], shape});
  }
  return out;
}

}  // namespace dic::track

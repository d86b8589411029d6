#include "track/blank_sides.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "track/changed_field.hpp"
#include "track/noise.hpp"

namespace dic::track {
namespace {

/// Grey values of so many standard deviations of noise are not noise alone.
constexpr double kLargestRange = 10;
/// The variance of noise in half a subset is not more than this times its own.
constexpr double kLargestVariance = 1.3;
/// Share of half a subset that must be there for it to tell something.
constexpr double kLeastShare = 0.5;

struct Box {
  int left, right, top, bottom;  ///< px, inclusive
};

/// Says whether a box of an image shows noise alone, or one grey value.
class BlankTest {
 public:
  BlankTest(ImageView image, ImageView roi, double noise)
      : image_(image), roi_(roi), variance_(noise * noise + (image.type == ScalarType::u8 ? 1 / 12.0 : 0)) {}

  /// least: px that must be inside image and ROI.
  bool operator()(const Box& box, double least) const {
    return visit_scalar(image_.type, [&](auto element) { return is_blank<decltype(element)>(box, least); });
  }

 private:
  template <typename T>
  bool is_blank(const Box& box, double least) const {
    const double range = kLargestRange * std::sqrt(variance_);
    double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0, squares = 0;
    std::int64_t count = 0;
    for (int y = std::max(0, box.top); y <= std::min(image_.height - 1, box.bottom); ++y)
      for (int x = std::max(0, box.left); x <= std::min(image_.width - 1, box.right); ++x) {
        if (roi_.data && roi_.row<std::uint8_t>(y)[x] == 0) continue;
        const auto grey = static_cast<double>(image_.row<T>(y)[x]);
        low = std::min(low, grey);
        high = std::max(high, grey);
        if (high - low > range) return false;  // nearly all points end here, after a few pixels
        sum += grey, squares += grey * grey;
        ++count;
      }
    if (static_cast<double>(count) < least) return false;
    const double n = static_cast<double>(count), mean = sum / n;
    return squares / n - mean * mean <= kLargestVariance * variance_;
  }

  ImageView image_, roi_;
  double variance_;
};

class ClearedResult final : public Result {
 public:
  ClearedResult(std::unique_ptr<Result> measured, std::shared_ptr<const std::vector<std::int64_t>> nodes,
                const TrackOptions& options)
      : measured_(std::move(measured)), nodes_(std::move(nodes)), options_(options) {}

  std::shared_ptr<const TrackedPositions> positions() override { return measured_->positions(); }
  PointCounts counts() override { return measured_->counts(); }

 private:
  FrameResult read() override {
    FrameResult result = measured_->fetch();
    const auto has = [&](std::int64_t node) { return has_values(result.field.status[node]); };
    if (std::ranges::none_of(*nodes_, has)) return result;
    change_field(result, options_, "refine", [&](Field& field) {
      for (const std::int64_t node : *nodes_)
        if (has(node)) clear_node(field, node, Status::flat);
    });
    return result;
  }

  std::unique_ptr<Result> measured_;
  std::shared_ptr<const std::vector<std::int64_t>> nodes_;
  TrackOptions options_;
};

}  // namespace

std::vector<std::int64_t> nodes_beside_texture(const TrackOptions& options, ImageView reference,
                                               ImageView roi, const Points& points) {
  const double noise = options.noise
                           ? *options.noise
                           : image_noise(reference, noise_places(reference.size(), points.x, points.y));
  const BlankTest blank(reference, roi, noise);
  const int r = options.refine.subset / 2;
  const double least = kLeastShare * r * options.refine.subset;
  std::vector<std::int64_t> nodes;
  for (std::int64_t i = 0; i < points.size(); ++i) {
    const int x = points.x[i], y = points.y[i];
    if (blank({x - r, x - 1, y - r, y + r}, least) || blank({x + 1, x + r, y - r, y + r}, least) ||
        blank({x - r, x + r, y - r, y - 1}, least) || blank({x - r, x + r, y + 1, y + r}, least))
      nodes.push_back(points.node_of[i]);
  }
  return nodes;
}

std::unique_ptr<Result> without_nodes(std::unique_ptr<Result> measured,
                                      std::shared_ptr<const std::vector<std::int64_t>> nodes,
                                      const TrackOptions& options) {
  return std::make_unique<ClearedResult>(std::move(measured), std::move(nodes), options);
}

}  // namespace dic::track

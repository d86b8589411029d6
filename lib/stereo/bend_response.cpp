#include "stereo/bend_response.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cstdint>
#include <dic/shared/subset_window.hpp>

namespace dic::stereo {
namespace {

constexpr int kParameters = 8;  ///< six of the affine motion, mean, gain
constexpr int kBends = 6;
using Parameters = Eigen::Matrix<float, kParameters, 1>;
using Bends = Eigen::Matrix<float, kBends, 1>;

/// Grey levels of the reference as floats, with their gradients.
class Texture {
 public:
  Texture(ImageView image, core::ThreadPool& pool)
      : width_(image.width), height_(image.height), grey_(static_cast<std::size_t>(width_) * height_) {
    visit_scalar(image.type, [&]<typename T>(T) {
      core::for_each_row(pool, height_, [&](int y) {
        std::transform(image.row<T>(y), image.row<T>(y) + width_, grey_.begin() + offset(0, y),
                       [](T value) { return static_cast<float>(value); });
      });
    });
  }
  float grey(int x, int y) const { return grey_[offset(x, y)]; }
  float slope_x(int x, int y) const {
    return x < 1 || x + 1 >= width_ ? 0 : (grey(x + 1, y) - grey(x - 1, y)) / 2;
  }
  float slope_y(int x, int y) const {
    return y < 1 || y + 1 >= height_ ? 0 : (grey(x, y + 1) - grey(x, y - 1)) / 2;
  }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  std::ptrdiff_t offset(int x, int y) const { return static_cast<std::ptrdiff_t>(y) * width_ + x; }

  int width_, height_;
  std::vector<float> grey_;
};

BendResponse response_at(const Texture& texture, int x0, int y0, const MeasuredSubsets& subsets) {
  const int radius = subsets.size / 2;
  const float unit = 1.0F / static_cast<float>(std::max(radius, 1));
  const float mean =
      texture.grey(std::clamp(x0, 0, texture.width() - 1), std::clamp(y0, 0, texture.height() - 1));
  Eigen::Matrix<float, kParameters, kParameters> normal =
      Eigen::Matrix<float, kParameters, kParameters>::Zero();
  Eigen::Matrix<float, kParameters, kBends> right = Eigen::Matrix<float, kParameters, kBends>::Zero();
  for (int y = std::max(y0 - radius, 0); y <= std::min(y0 + radius, texture.height() - 1); ++y)
    for (int x = std::max(x0 - radius, 0); x <= std::min(x0 + radius, texture.width() - 1); ++x) {
      const float weight = window_weight<float>(subsets.weights, x - x0, subsets.size) *
                           window_weight<float>(subsets.weights, y - y0, subsets.size);
      const float gx = texture.slope_x(x, y), gy = texture.slope_y(x, y);
      const float a = static_cast<float>(x - x0) * unit, b = static_cast<float>(y - y0) * unit;
      Parameters basis;
      basis << gx, gy, gx * a, gx * b, gy * a, gy * b, 1, (texture.grey(x, y) - mean) / 64;
      Bends bends;
      bends << gx * a * a / 2, gx * a * b, gx * b * b / 2, gy * a * a / 2, gy * a * b, gy * b * b / 2;
      normal.noalias() += weight * basis * basis.transpose();
      right.noalias() += weight * basis * bends.transpose();
    }
  normal.diagonal().array() += 1e-6F * normal.diagonal().maxCoeff();  // flat subsets have no inverse
  const Eigen::Matrix<float, kParameters, kBends> fitted = normal.ldlt().solve(right);
  return fitted.topRows<2>() / (unit * unit);
}

}  // namespace

std::vector<BendResponse> bend_responses(ImageView reference, const Grid& grid,
                                         const MeasuredSubsets& subsets, core::ThreadPool& pool) {
  const Texture texture(reference, pool);
  std::vector<BendResponse> responses(static_cast<std::size_t>(grid.nodes()), BendResponse::Zero());
  constexpr std::int64_t kNodesPerTask = 64;
  pool.parallel_for(grid.nodes(), kNodesPerTask, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t k = first; k < last; ++k) {
      if (!grid.inside[static_cast<std::size_t>(k)]) continue;
      const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
      responses[static_cast<std::size_t>(k)] = response_at(texture, grid.x(i), grid.y(j), subsets);
    }
  });
  return responses;
}

}  // namespace dic::stereo

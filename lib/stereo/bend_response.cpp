#include "stereo/bend_response.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <dic/shared/subset_window.hpp>

namespace dic::stereo {
namespace {

constexpr int kParameters = 8;  ///< six of the affine motion, mean, gain
constexpr int kBends = 6;

/// Grey levels of the reference as floats.
class Texture {
 public:
  Texture(ImageView image, core::ThreadPool& pool)
      : width_(image.width), height_(image.height), grey_(static_cast<std::size_t>(width_) * height_) {
    visit_scalar(image.type, [&]<typename T>(T) {
      core::for_each_row(pool, height_, [&](int y) {
        std::transform(image.row<T>(y), image.row<T>(y) + width_,
                       grey_.begin() + static_cast<std::ptrdiff_t>(y) * width_,
                       [](T value) { return static_cast<float>(value); });
      });
    });
  }
  const float* row(int y) const { return grey_.data() + static_cast<std::ptrdiff_t>(y) * width_; }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  int width_, height_;
  std::vector<float> grey_;
};

/// Products of gradients (x, y) and grey level whose moments over a subset are needed.
enum Product : std::uint8_t { xx, xy, yy, x, y, x_grey, y_grey, kProducts };
constexpr int kPowers = 4;
/// Sums of a product times powers 0 to 3 of the distance along x, in halves of the subset.
using Powers = Eigen::Array4f;

/// Sums over a subset: of the products times a^k b^l, [l][product](k), and of grey levels.
struct Moments {
  std::array<std::array<Powers, kProducts>, kPowers> of;
  float weight, grey, square;

  float at(int product, int a, int b) const { return of[b][product][a]; }
};

/// The same sums over a row of the subset.
struct RowMoments {
  std::array<Powers, kProducts> of;
  float weight = 0, grey = 0, square = 0;
};

/// Pixels of one subset along an axis: weights, and weights times powers of the distance from the middle.
class Window {
 public:
  explicit Window(const MeasuredSubsets& subsets) : radius_(subsets.size / 2) {
    const float unit = 1.0F / static_cast<float>(std::max(radius_, 1));
    for (int d = -radius_; d <= radius_; ++d) {
      const float weight = window_weight<float>(subsets.weights, d, subsets.size);
      const float a = static_cast<float>(d) * unit;
      powers_.push_back(Powers(1, a, a * a, a * a * a) * weight);
    }
  }
  int radius() const { return radius_; }
  const Powers& at(int distance) const { return powers_[distance + radius_]; }

 private:
  int radius_;
  std::vector<Powers> powers_;
};

/// Some columns of a row of the texture: grey levels less `offset`, and products.
class ProductRow {
 public:
  ProductRow(int first, int last)
      : first_(first), grey_(static_cast<std::size_t>(last - first) + 1), products_(grey_.size()) {}

  void take(const Texture& texture, int y, float offset) {
    const float* const row = texture.row(y);
    const bool is_inner = y > 0 && y + 1 < texture.height();
    const float *const above = is_inner ? texture.row(y - 1) : row, *const below =
                                                                        is_inner ? texture.row(y + 1) : row;
    for (std::size_t n = 0; n < grey_.size(); ++n) {
      const int column = first_ + static_cast<int>(n);
      const bool has_sides = column > 0 && column + 1 < texture.width();
      const float gx = has_sides ? (row[column + 1] - row[column - 1]) / 2 : 0;
      const float gy = (below[column] - above[column]) / 2, g = row[column] - offset;
      grey_[n] = g;
      products_[n] = {gx * gx, gx * gy, gy * gy, gx, gy, gx * g, gy * g};
    }
  }

  /// first, last: distances from x0 between which the subset has pixels.
  RowMoments around(int x0, int first, int last, const Window& window) const {
    RowMoments sums;
    for (Powers& sum : sums.of) sum.setZero();
    for (int d = first; d <= last; ++d) {
      const auto n = static_cast<std::size_t>(x0 + d - first_);
      const Powers& powers = window.at(d);
      for (int p = 0; p < kProducts; ++p) sums.of[p] += powers * products_[n][p];
      const float weight = powers[0], g = grey_[n];
      sums.weight += weight, sums.grey += weight * g, sums.square += weight * g * g;
    }
    return sums;
  }

 private:
  int first_;
  std::vector<float> grey_;
  std::vector<std::array<float, kProducts>> products_;
};

void add(Moments& to, const RowMoments& row, const Powers& along_y) {
  for (int l = 0; l < kPowers; ++l)
    for (int p = 0; p < kProducts; ++p) to.of[l][p] += along_y[l] * row.of[p];
  to.weight += along_y[0] * row.weight, to.grey += along_y[0] * row.grey,
      to.square += along_y[0] * row.square;
}

/// A function that multiplies a gradient: x or y, times a^i b^j.
struct Term {
  int axis, a, b;
};
constexpr std::array<Term, 6> kAffine = {{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {1, 0, 1}}};
constexpr std::array<Term, kBends> kBend = {
    {{0, 2, 0}, {0, 1, 1}, {0, 0, 2}, {1, 2, 0}, {1, 1, 1}, {1, 0, 2}}};

BendResponse response_of(const Moments& m, float unit) {
  const auto product = [&](const Term& p, const Term& q) {
    return m.at(xx + p.axis + q.axis, p.a + q.a, p.b + q.b);
  };
  const auto factor = [](const Term& bend) { return bend.a == 1 ? 1.0F : 0.5F; };
  Eigen::Matrix<float, kParameters, kParameters> normal =
      Eigen::Matrix<float, kParameters, kParameters>::Zero();  // the lower half is filled
  Eigen::Matrix<float, kParameters, kBends> right;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j <= i; ++j) normal(i, j) = product(kAffine[i], kAffine[j]);
    for (int j = 0; j < kBends; ++j) right(i, j) = factor(kBend[j]) * product(kAffine[i], kBend[j]);
    normal(6, i) = m.at(x + kAffine[i].axis, kAffine[i].a, kAffine[i].b);
    normal(7, i) = m.at(x_grey + kAffine[i].axis, kAffine[i].a, kAffine[i].b);
  }
  normal(6, 6) = m.weight, normal(7, 6) = m.grey, normal(7, 7) = m.square;
  for (int j = 0; j < kBends; ++j) {
    right(6, j) = factor(kBend[j]) * m.at(x + kBend[j].axis, kBend[j].a, kBend[j].b);
    right(7, j) = factor(kBend[j]) * m.at(x_grey + kBend[j].axis, kBend[j].a, kBend[j].b);
  }
  // In units of the columns, so that the contrast of the image does not matter.
  Eigen::Matrix<float, kParameters, 1> scale = normal.diagonal();
  for (float& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  normal = scale.asDiagonal() * normal * scale.asDiagonal();
  normal.diagonal().array() += 1e-6F;  // flat subsets have no inverse
  Eigen::Matrix<float, kParameters, 2> rows = Eigen::Matrix<float, kParameters, 2>::Identity();
  normal.selfadjointView<Eigen::Lower>().llt().solveInPlace(rows);
  rows = scale.asDiagonal() * rows * scale.head<2>().asDiagonal();
  return rows.transpose() * right / (unit * unit);
}

/// The responses at the nodes of a part of the grid, whose subsets share the sums over their rows.
class Tile {
 public:
  static constexpr int kSide = 8;  ///< nodes

  Tile(const Texture& texture, const Grid& grid, const Window& window, int i0, int j0)
      : texture_(texture),
        grid_(grid),
        window_(window),
        i0_(i0),
        i1_(std::min(i0 + kSide, grid.nx)),
        j0_(j0),
        j1_(std::min(j0 + kSide, grid.ny)) {}

  bool is_empty() const {
    for (int j = j0_; j < j1_; ++j)
      for (int i = i0_; i < i1_; ++i)
        if (grid_.inside[index(i, j)]) return false;
    return true;
  }

  void fill(std::vector<BendResponse>& responses) {
    const int radius = window_.radius();
    for (Moments& m : moments_) {
      for (auto& products : m.of)
        for (Powers& powers : products) powers.setZero();
      m.weight = m.grey = m.square = 0;
    }
    const int top = std::max(grid_.y(j0_) - radius, 0),
              bottom = std::min(grid_.y(j1_ - 1) + radius, texture_.height() - 1);
    ProductRow row(std::max(grid_.x(i0_) - radius, 0),
                   std::min(grid_.x(i1_ - 1) + radius, texture_.width() - 1));
    const float offset = middle_grey();
    for (int y = top; y <= bottom; ++y) {
      row.take(texture_, y, offset);
      for (int i = i0_; i < i1_; ++i) add_row(row, i, y);
    }
    const float unit = 1.0F / static_cast<float>(std::max(radius, 1));
    for (int j = j0_; j < j1_; ++j)
      for (int i = i0_; i < i1_; ++i)
        if (grid_.inside[index(i, j)]) responses[index(i, j)] = response_of(moments(i, j), unit);
  }

 private:
  std::size_t index(int i, int j) const { return static_cast<std::size_t>(j) * grid_.nx + i; }
  Moments& moments(int i, int j) { return moments_[static_cast<std::size_t>(j - j0_) * kSide + (i - i0_)]; }
  /// A grey level of the tile, so that squares of grey levels lose no digits.
  float middle_grey() const {
    const int i = (i0_ + i1_) / 2, j = (j0_ + j1_) / 2;
    return texture_.row(
        std::clamp(grid_.y(j), 0, texture_.height() - 1))[std::clamp(grid_.x(i), 0, texture_.width() - 1)];
  }
  void add_row(const ProductRow& row, int i, int y) {
    const int radius = window_.radius(), x0 = grid_.x(i);
    const RowMoments sums =
        row.around(x0, std::max(-radius, -x0), std::min(radius, texture_.width() - 1 - x0), window_);
    for (int j = j0_; j < j1_; ++j)
      if (const int d = y - grid_.y(j); std::abs(d) <= radius) add(moments(i, j), sums, window_.at(d));
  }

  const Texture& texture_;
  const Grid& grid_;
  const Window& window_;
  int i0_, i1_, j0_, j1_;
  std::array<Moments, static_cast<std::size_t>(kSide) * kSide> moments_;
};

}  // namespace

std::vector<BendResponse> bend_responses(ImageView reference, const Grid& grid,
                                         const MeasuredSubsets& subsets, core::ThreadPool& pool) {
  const Texture texture(reference, pool);
  const Window window(subsets);
  std::vector<BendResponse> responses(static_cast<std::size_t>(grid.nodes()), BendResponse::Zero());
  const int across = (grid.nx + Tile::kSide - 1) / Tile::kSide,
            down = (grid.ny + Tile::kSide - 1) / Tile::kSide;
  pool.parallel_for(std::int64_t{across} * down, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t t = first; t < last; ++t) {
      Tile tile(texture, grid, window, static_cast<int>(t % across) * Tile::kSide,
                static_cast<int>(t / across) * Tile::kSide);
      if (!tile.is_empty()) tile.fill(responses);
    }
  });
  return responses;
}

}  // namespace dic::stereo

#include "match/pose_sigmas.hpp"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <type_traits>

#include "core/dense_solvers.hpp"

namespace dic::match {
namespace {

using Pixel = FittedPixels::Pixel;
using Vector = PoseScatter::Vector;
using Matrix = PoseScatter::Matrix;

constexpr int kUnknowns = PoseScatter::kMost + 2;  // gain and offset are the last two
using Terms = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kUnknowns, 1>;
using Normal = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kUnknowns, kUnknowns>;

/// Information, in standard deviations that it has by chance, from which a motion is determined.
constexpr double kStandsOut = 3;
/// Share of the best determined motion's information that errors of interpolation give to any other one: what
/// is round seems to have an angle because both images have the same grid of pixels.
constexpr double kOfInterpolation = 1e-3;
/// Pixels whose gradients depend on each other because of the filter that computes them.
constexpr double kGradientPixels = 4;

/// Derivatives of a pixel's grey value with respect to the free parameters, gain and offset.
template <int kFree>
using PixelTerms = std::array<double, kFree + 2>;

/// From the gradient of the template or the image. freedom: has kFree parameters.
template <int kFree>
PixelTerms<kFree> terms_of(pose::Freedom freedom, const Pixel& p, double gx, double gy) {
  PixelTerms<kFree> of{gx, gy};
  if constexpr (kFree == pose::kGeometric) {
    of[2] = p.xi * gx, of[3] = p.eta * gx, of[4] = p.xi * gy, of[5] = p.eta * gy;
  } else {
    const double turn = p.xi * gy - p.eta * gx, growth = p.xi * gx + p.eta * gy;
    if constexpr (kFree > 2) of[2] = freedom == pose::Freedom::scale ? growth : turn;
    if constexpr (kFree > 3) of[3] = growth;
  }
  of[kFree] = p.t, of[kFree + 1] = 1;
  return of;
}

/// Normal matrix and right-hand side of a group of pixels.
struct GroupSums {
  Normal matrix;
  Terms right;
};

struct Sums {
  std::vector<GroupSums> groups;
  Normal all;    ///< products of the template's derivatives
  Normal mixed;  ///< products of the template's derivatives (rows) and the image's (columns)
};

/// Calls visitor(number of free parameters) with a compile-time value.
template <typename Visitor>
auto visit_free(pose::Freedom freedom, Visitor&& visitor) {
  switch (pose::parameters(freedom)) {
    case 2:
      return visitor(std::integral_constant<int, 2>{});
    case 3:
      return visitor(std::integral_constant<int, 3>{});
    case 4:
      return visitor(std::integral_constant<int, 4>{});
    default:
      return visitor(std::integral_constant<int, pose::kGeometric>{});
  }
}

/// Adds a group of pixels.
template <int kFree>
void add_group(std::span<const Pixel> pixels, pose::Freedom freedom, Sums& sums) {
  constexpr int kSize = kFree + 2;
  using Square = Eigen::Matrix<double, kSize, kSize>;
  using Row = Eigen::Matrix<double, kSize, 1>;
  Square matrix = Square::Zero(), mixed = Square::Zero();
  Row right = Row::Zero();
  for (const Pixel& p : pixels) {
    if (p.weight == 0) continue;
    const auto of_t = terms_of<kFree>(freedom, p, p.tx, p.ty), of_i = terms_of<kFree>(freedom, p, p.ix, p.iy);
    const Eigen::Map<const Row> t(of_t.data()), i(of_i.data());
    const Row weighted = static_cast<double>(p.weight) * t;
    matrix.noalias() += weighted * t.transpose();
    mixed.noalias() += weighted * i.transpose();
    right += static_cast<double>(p.residual) * weighted;
  }
  sums.groups.push_back({matrix, right});
  sums.all += matrix;
  sums.mixed += mixed;
}

Sums sums_of(const FittedPixels& fitted, pose::Freedom freedom) {
  const int size = pose::parameters(freedom) + 2;
  Sums sums{{}, Normal::Zero(size, size), Normal::Zero(size, size)};
  const std::span<const Pixel> all(fitted.pixels);
  for (std::size_t k = 0; k < all.size(); k += FittedPixels::kGroup) {
    const auto group = all.subspan(k, std::min<std::size_t>(FittedPixels::kGroup, all.size() - k));
    visit_free(freedom, [&](auto free) { add_group<free>(group, freedom, sums); });
  }
  return sums;
}

/// Products of derivatives from which gain and offset, the last two unknowns, are eliminated.
struct Reduced {
  Normal rows, columns;  ///< combinations of gain and offset that are subtracted from rows and columns
  Matrix matrix;

  Reduced(const Normal& full, int free) {
    const Eigen::Matrix2d inverse = full.bottomRightCorner<2, 2>().inverse();
    rows = full.topRightCorner(free, 2) * inverse;
    columns = (inverse * full.bottomLeftCorner(2, free)).transpose();
    matrix = full.topLeftCorner(free, free) - rows * full.bottomLeftCorner(2, free);
  }
};

/// Scatter of the free parameters, if the template's gradients were free of noise.
Matrix jackknife(const Sums& sums, int free) {
  Matrix covariance = Matrix::Zero(free, free);
  for (const GroupSums& group : sums.groups) {
    Eigen::LLT<Normal> without(sums.all - group.matrix);
    // A group that decides alone: its influence on the fit of all groups is the best that is known.
    if (without.info() != Eigen::Success) without.compute(sums.all);
    const Terms change = without.solve(group.right);
    covariance += change.head(free) * change.head(free).transpose();
  }
  return covariance;
}

/// Variances that noise gives to the information about some motions, the columns.
///
/// With a = s + m and b = s + n for the derivatives of template and image, a b varies by s^2 (m^2 + n^2) +
/// m^2 n^2. (a b)^2 is that on average, and s^4 more; so is (a^2 - b^2)^2 / 4, but for (m^2 - n^2)^2 / 4 and
/// more without s^4: few strong pixels count by the first one as chance, noise of the image alone by the
/// second one. The smaller sum counts.
template <int kFree>
std::vector<double> chances(std::span<const Pixel> pixels, pose::Freedom freedom, const Reduced& mixed,
                            const Matrix& motions) {
  using Motions = Eigen::Matrix<double, kFree, kFree + 2>;  // a row per motion
  Motions rows, columns;
  rows << motions.transpose(), -motions.transpose() * mixed.rows;
  columns << motions.transpose(), -motions.transpose() * mixed.columns;
  using Row = Eigen::Matrix<double, kFree + 2, 1>;
  using Free = Eigen::Array<double, kFree, 1>;
  Free of_products = Free::Zero(), of_differences = Free::Zero();
  for (const Pixel& p : pixels) {
    if (p.weight == 0) continue;
    const auto of_t = terms_of<kFree>(freedom, p, p.tx, p.ty), of_i = terms_of<kFree>(freedom, p, p.ix, p.iy);
    const Eigen::Map<const Row> t(of_t.data()), i(of_i.data());
    const double weight = p.weight;
    const Free a = (rows * t).array(), b = (columns * i).array();
    of_products += (weight * a * b).square();
    of_differences += (weight / 2 * (a.square() - b.square())).square();
  }
  const Free sums = kGradientPixels * of_products.min(of_differences);
  return {sums.begin(), sums.end()};
}

}  // namespace

std::optional<PoseScatter> scatter_of(const FittedPixels& fitted, pose::Freedom freedom, double rim) {
  const int free = pose::parameters(freedom);
  const Sums sums = sums_of(fitted, freedom);
  if (Eigen::LLT<Normal>(sums.all).info() != Eigen::Success) return std::nullopt;
  const Matrix scatter = jackknife(sums, free);
  const Reduced plain(sums.all, free), mixed(sums.mixed, free);
  Vector unit = Vector::Constant(free, 1 / std::max(1.0, rim));  // parameters that move the rim by 1 px
  unit.head(2).setOnes();
  const Matrix information = unit.asDiagonal() * mixed.matrix * unit.asDiagonal();
  const auto axes = core::symmetric_eigen((information + information.transpose()) / 2);
  PoseScatter result;
  // Step per unit of the right-hand side, along the axes: by the mixed products instead of the template's.
  const Matrix to_axes = axes.vectors.transpose() * unit.asDiagonal() * plain.matrix;
  Matrix along = to_axes * scatter * to_axes.transpose();
  const std::vector<double> variances = visit_free(freedom, [&](auto count) {
    return chances<count>(fitted.pixels, freedom, mixed, unit.asDiagonal() * axes.vectors);
  });
  for (int k = 0; k < free; ++k) {
    const double value = axes.values[k], variance = variances[k];
    const double by_chance = kStandsOut * std::sqrt(variance),
                 by_grid = kOfInterpolation * axes.values[free - 1];
    const bool is_loose = !(value > std::max(by_chance, by_grid));
    const double certain = is_loose ? 0 : 1 / (value - variance / value);
    along.row(k) *= certain, along.col(k) *= certain;
    if (!is_loose) continue;
    result.loose.push_back(axes.vectors.col(k));
  }
  const Matrix from_axes = unit.asDiagonal() * axes.vectors;
  result.covariance = from_axes * along * from_axes.transpose();
  return result;
}

}  // namespace dic::match

#include "match/pose_sigmas.hpp"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "core/dense_solvers.hpp"
#include "match/pose_kernels.hpp"

namespace dic::match {
namespace {

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

/// Derivatives of the pixels' grey values with respect to the free parameters, gain and offset, a row each,
/// whose columns are padded with weights of zero to whole groups. With n free parameters: n derivatives by
/// the template's gradient, those by gain and offset, n derivatives by the image's gradient, the residuals.
class TermRows {
 public:
  TermRows(const FittedPixels& fitted, pose::Freedom freedom)
      : free_(pose::parameters(freedom)),
        count_((fitted.pixels.size() + kGroup - 1) / kGroup * kGroup),
        values_((2 * free_ + 4) * count_, 0.0F) {
    for (std::size_t k = 0; k < fitted.pixels.size(); ++k) {
      const FittedPixels::Pixel& p = fitted.pixels[k];
      if (p.weight == 0) continue;
      set_derivatives(0, k, freedom, p, p.tx, p.ty);
      set_derivatives(unknowns(), k, freedom, p, p.ix, p.iy);
      row(free_)[k] = p.t, row(free_ + 1)[k] = 1;
      row(columns() - 1)[k] = p.residual;
      row(columns())[k] = p.weight;
    }
  }
  static constexpr std::size_t kGroup = FittedPixels::kGroup;
  int free() const { return free_; }
  int unknowns() const { return free_ + 2; }
  int columns() const { return 2 * free_ + 3; }  ///< rows that are multiplied with those of the unknowns
  std::size_t count() const { return count_; }
  /// A group of pixels, of all rows.
  WeightedRows group(std::size_t begin) const {
    return {values_.data() + begin, static_cast<std::ptrdiff_t>(count_),
            values_.data() + columns() * count_ + begin, static_cast<int>(kGroup)};
  }

 private:
  float* row(int index) { return values_.data() + index * count_; }
  void set_derivatives(int first, std::size_t k, pose::Freedom freedom, const FittedPixels::Pixel& p,
                       float gx, float gy) {
    row(first)[k] = gx, row(first + 1)[k] = gy;
    if (freedom == pose::Freedom::affine) {
      row(first + 2)[k] = p.xi * gx, row(first + 3)[k] = p.eta * gx;
      row(first + 4)[k] = p.xi * gy, row(first + 5)[k] = p.eta * gy;
      return;
    }
    const float turn = p.xi * gy - p.eta * gx, growth = p.xi * gx + p.eta * gy;
    if (free_ > 2) row(first + 2)[k] = freedom == pose::Freedom::scale ? growth : turn;
    if (free_ > 3) row(first + 3)[k] = growth;
  }

  int free_;
  std::size_t count_;
  std::vector<float> values_;
};

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

Sums sums_of(const TermRows& terms) {
  const int free = terms.free(), size = terms.unknowns(), columns = terms.columns();
  Sums sums{{}, Normal::Zero(size, size), Normal::Zero(size, size)};
  using Products = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Products products(size, columns);
  for (std::size_t k = 0; k < terms.count(); k += TermRows::kGroup) {
    weighted_products(terms.group(k), size, columns, products.data());
    const Normal matrix = products.leftCols(size);
    sums.all += matrix;
    sums.mixed.leftCols(free) += products.middleCols(size, free);
    sums.groups.push_back({matrix, products.col(columns - 1)});
  }
  sums.mixed.rightCols(2) = sums.all.rightCols(2);
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
template <int kFree>
Matrix jackknife(const Sums& sums) {
  using Square = Eigen::Matrix<double, kFree + 2, kFree + 2>;
  using Column = Eigen::Matrix<double, kFree + 2, 1>;
  const Square all = sums.all;
  Eigen::Matrix<double, kFree, kFree> covariance = Eigen::Matrix<double, kFree, kFree>::Zero();
  for (const GroupSums& group : sums.groups) {
    Eigen::LLT<Square> without(all - Square(group.matrix));
    // A group that decides alone: its influence on the fit of all groups is the best that is known.
    if (without.info() != Eigen::Success) without.compute(all);
    const Column change = without.solve(Column(group.right));
    covariance += change.template head<kFree>() * change.template head<kFree>().transpose();
  }
  return covariance;
}

Matrix jackknife(const Sums& sums, int free) {
  switch (free) {
    case 2:
      return jackknife<2>(sums);
    case 3:
      return jackknife<3>(sums);
    case 4:
      return jackknife<4>(sums);
    default:
      return jackknife<pose::kGeometric>(sums);
  }
}

/// Variances that noise gives to the information about some motions, the columns.
///
/// With a = s + m and b = s + n for the derivatives of template and image, a b varies by s^2 (m^2 + n^2) +
/// m^2 n^2. (a b)^2 is that on average, and s^4 more; so is (a^2 - b^2)^2 / 4, but for (m^2 - n^2)^2 / 4 and
/// more without s^4: few strong pixels count by the first one as chance, noise of the image alone by the
/// second one. The smaller sum counts.
std::vector<double> chances(const TermRows& terms, const Reduced& mixed, const Matrix& motions) {
  const int free = terms.free(), unknowns = terms.unknowns();
  // Coefficients of the rows of `terms`, a row per motion: of a, then of b.
  using Coefficients = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Coefficients of = Coefficients::Zero(2 * free, unknowns + free);
  const Matrix turned = motions.transpose();
  of.topLeftCorner(free, free) = turned.cast<float>();
  of.block(0, free, free, 2) = (-turned * mixed.rows).cast<float>();
  of.bottomRightCorner(free, free) = turned.cast<float>();
  of.block(free, free, free, 2) = (-turned * mixed.columns).cast<float>();
  std::vector<double> products(free), differences(free);
  for (std::size_t k = 0; k < terms.count(); k += TermRows::kGroup)
    add_squared_products(terms.group(k), unknowns + free, of.data(), free, products.data(),
                         differences.data());
  for (int k = 0; k < free; ++k) products[k] = kGradientPixels * std::min(products[k], differences[k]);
  return products;
}

}  // namespace

std::optional<PoseScatter> scatter_of(const FittedPixels& fitted, pose::Freedom freedom, double rim) {
  const int free = pose::parameters(freedom);
  const TermRows terms(fitted, freedom);
  const Sums sums = sums_of(terms);
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
  const std::vector<double> variances = chances(terms, mixed, unit.asDiagonal() * axes.vectors);
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

#include "match/pose_sigmas.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

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
/// Pixels whose gradients depend on each other because of the filter that computes them.
constexpr double kGradientPixels = 4;

/// Derivatives of the pixels' grey values with respect to the free parameters, gain and offset.
class Derivatives {
 public:
  explicit Derivatives(pose::Freedom freedom) : free_(pose::parameters(freedom)) {
    for (int i = 0; i < free_; ++i)
      for (int term = 0; term < pose::kGeometric; ++term) basis_[i][term] = pose::basis(freedom, i, term);
  }
  Terms of_template(const Pixel& p) const { return of(p, p.tx, p.ty); }
  Terms of_image(const Pixel& p) const { return of(p, p.ix, p.iy); }

 private:
  /// From the gradient of the template or the image.
  Terms of(const Pixel& p, double gx, double gy) const {
    const double terms[pose::kGeometric] = {gx, gy, p.xi * gx, p.eta * gx, p.xi * gy, p.eta * gy};
    Terms of(free_ + 2);
    for (int i = 0; i < free_; ++i) {
      double sum = 0;
      for (int term = 0; term < pose::kGeometric; ++term) sum += basis_[i][term] * terms[term];
      of[i] = sum;
    }
    of[free_] = p.t, of[free_ + 1] = 1;
    return of;
  }

  int free_;
  double basis_[pose::kGeometric][pose::kGeometric] = {};
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

Sums sums_of(const FittedPixels& fitted, pose::Freedom freedom) {
  const int size = pose::parameters(freedom) + 2;
  const Derivatives derivatives(freedom);
  const GroupSums empty{Normal::Zero(size, size), Terms::Zero(size)};
  Sums sums{{}, empty.matrix, empty.matrix};
  for (std::size_t k = 0; k < fitted.pixels.size(); ++k) {
    if (k % FittedPixels::kGroup == 0) sums.groups.push_back(empty);
    const Pixel& p = fitted.pixels[k];
    if (p.weight == 0) continue;
    const Terms t = derivatives.of_template(p), i = derivatives.of_image(p);
    sums.groups.back().matrix.noalias() += p.weight * t * t.transpose();
    sums.groups.back().right += static_cast<double>(p.weight) * p.residual * t;
    sums.mixed.noalias() += p.weight * t * i.transpose();
  }
  for (const GroupSums& group : sums.groups) sums.all += group.matrix;
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

/// Variances that the information about some motions, the columns, has by chance.
std::vector<double> chances(const FittedPixels& fitted, pose::Freedom freedom, const Reduced& mixed,
                            const Matrix& motions) {
  const Derivatives derivatives(freedom);
  const auto free = motions.rows();
  const Eigen::MatrixXd rows = mixed.rows.transpose() * motions,
                        columns = mixed.columns.transpose() * motions;
  std::vector<double> sums(motions.cols(), 0.0);
  for (const Pixel& p : fitted.pixels) {
    if (p.weight == 0) continue;
    const Terms t = derivatives.of_template(p), i = derivatives.of_image(p);
    for (Eigen::Index k = 0; k < motions.cols(); ++k) {
      double of_t = -rows(0, k) * p.t - rows(1, k), of_i = -columns(0, k) * p.t - columns(1, k);
      for (Eigen::Index j = 0; j < free; ++j) of_t += motions(j, k) * t[j], of_i += motions(j, k) * i[j];
      const double product = p.weight * of_t * of_i;
      sums[k] += product * product;
    }
  }
  for (double& sum : sums) sum *= kGradientPixels;
  return sums;
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
  const Eigen::SelfAdjointEigenSolver<Matrix> axes((information + information.transpose()) / 2);
  PoseScatter result;
  // Step per unit of the right-hand side, along the axes: by the mixed products instead of the template's.
  const Matrix to_axes = axes.eigenvectors().transpose() * unit.asDiagonal() * plain.matrix;
  Matrix along = to_axes * scatter * to_axes.transpose();
  const std::vector<double> variances =
      chances(fitted, freedom, mixed, unit.asDiagonal() * axes.eigenvectors());
  for (int k = 0; k < free; ++k) {
    const double value = axes.eigenvalues()[k], variance = variances[k];
    const bool is_loose = !(value > kStandsOut * std::sqrt(variance));
    const double certain = is_loose ? 0 : 1 / (value - variance / value);
    along.row(k) *= certain, along.col(k) *= certain;
    if (!is_loose) continue;
    along(k, k) = kLooseSigma * kLooseSigma;
    if (!result.loose) result.loose = axes.eigenvectors().col(k);
  }
  const Matrix from_axes = unit.asDiagonal() * axes.eigenvectors();
  result.covariance = from_axes * along * from_axes.transpose();
  return result;
}

}  // namespace dic::match

#include "stereo/local_fit.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>

namespace dic::stereo {
namespace {

constexpr int kMostTerms = 6;
using Terms = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMostTerms, 1>;
using Normal = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMostTerms, kMostTerms>;

constexpr int terms_of(int degree) { return degree == 1 ? 3 : kMostTerms; }

/// x, y: distances from the centre of the window, in halves of its side, so that all terms are of one size.
Terms terms_at(double x, double y, int degree) {
  Eigen::Matrix<double, kMostTerms, 1> all;
  all << 1, x, y, x * x / 2, x * y, y * y / 2;
  return all.head(terms_of(degree));
}

}  // namespace

LocalFit::LocalFit(int nx, int ny, int window, int degree)
    : nx_(nx),
      ny_(ny),
      window_(window),
      half_(window / 2),
      degree_(degree),
      reached_(static_cast<std::size_t>(window) * window) {}

void LocalFit::collect(std::span<const std::uint8_t> usable, int i, int j) {
  nodes_.clear();
  std::ranges::fill(reached_, std::uint8_t{0});
  queue_.clear();
  const auto reach = [&](int di, int dj) {
    if (std::abs(di) > half_ || std::abs(dj) > half_) return;
    const int x = i + di, y = j + dj;
    if (x < 0 || y < 0 || x >= nx_ || y >= ny_) return;
    const int at = (dj + half_) * window_ + di + half_;
    if (reached_[at] || !usable[static_cast<std::size_t>(y) * nx_ + x]) return;
    reached_[at] = 1;
    queue_.push_back(at);
  };
  reach(0, 0);
  for (std::size_t k = 0; k < queue_.size(); ++k) {
    const int di = queue_[k] % window_ - half_, dj = queue_[k] / window_ - half_;
    reach(di - 1, dj), reach(di + 1, dj), reach(di, dj - 1), reach(di, dj + 1);
  }
  // The nodes are in the order of the grid, so that sums do not depend on the path.
  std::ranges::sort(queue_);
  for (const int at : queue_) {
    const int di = at % window_ - half_, dj = at / window_ - half_;
    nodes_.push_back({static_cast<std::size_t>(j + dj) * nx_ + i + di, di, dj});
  }
}

bool LocalFit::solve() {
  const double unit = 1.0 / half_;
  const int terms = terms_of(degree_);
  Normal normal = Normal::Zero(terms, terms);
  for (const Node& node : nodes_) {
    const Terms t = terms_at(node.i * unit, node.j * unit, degree_);
    normal.noalias() += t * t.transpose();
  }
  const Eigen::LDLT<Normal> solver(normal);
  constexpr double kLeastPivot = 1e-3;  // a complete window has at least 0.5, nodes in two rows have 0
  if (!(solver.vectorD().minCoeff() > kLeastPivot)) return false;
  const std::array<double, kMostTerms> scale = {1, unit, unit, unit * unit, unit * unit, unit * unit};
  rows_.assign(nodes_.size(), {});
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Terms row = solver.solve(terms_at(nodes_[n].i * unit, nodes_[n].j * unit, degree_));
    for (int k = 0; k < terms; ++k) rows_[n][k] = row[k] * scale[k];
  }
  return true;
}

bool LocalFit::all_usable(std::span<const std::uint8_t> usable, int i, int j) const {
  if (i < half_ || j < half_ || i + half_ >= nx_ || j + half_ >= ny_) return false;
  for (int y = j - half_; y <= j + half_; ++y) {
    const std::uint8_t* const row = usable.data() + static_cast<std::size_t>(y) * nx_ + i;
    if (!std::all_of(row - half_, row + half_ + 1, [](std::uint8_t is) { return is != 0; })) return false;
  }
  return true;
}

void LocalFit::take_all(int i, int j) {
  nodes_.clear();
  for (int dj = -half_; dj <= half_; ++dj)
    for (int di = -half_; di <= half_; ++di)
      nodes_.push_back({static_cast<std::size_t>(j + dj) * nx_ + i + di, di, dj});
}

bool LocalFit::place(std::span<const std::uint8_t> usable, int i, int j) {
  all_usable(usable, i, j) ? take_all(i, j) : collect(usable, i, j);
  if (2 * nodes_.size() < static_cast<std::size_t>(window_) * window_) return false;
  if (is_complete() && rows_are_complete_) return true;
  if (is_complete() && !complete_.empty()) {
    rows_ = complete_;
    return rows_are_complete_ = true;
  }
  rows_are_complete_ = false;
  if (!solve()) return false;
  if (is_complete()) complete_ = rows_, rows_are_complete_ = true;
  return true;
}

}  // namespace dic::stereo

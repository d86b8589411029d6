#pragma once

#include <array>
#include <cstdint>
#include <dic/fields.hpp>
#include <span>
#include <vector>

/// Polynomials through the nodes around a node.
namespace dic::stereo {

/// A polynomial of degree 1 or 2 over the grid, by distances (i, j) from its centre in nodes: value + di i
/// + dj j + ii i^2 / 2 + ij i j + jj j^2 / 2.
struct Quadratic {
  double value = 0, di = 0, dj = 0, ii = 0, ij = 0, jj = 0;
};

/// Least-squares fits over square windows of nodes. Only usable nodes take part that are connected with the
/// centre, inside the window, by steps to one of four neighbours, so that no gap is bridged.
class LocalFit {
 public:
  /// window: side of the window, nodes, odd, 3 to 127. degree: 1 or 2.
  LocalFit(int nx, int ny, int window, int degree);

  /// Finds the nodes of the window around (i, j). usable: 1 for each node that may take part. False if too
  /// few of them are there for the polynomial: less than half of the window, or all on one side.
  bool place(std::span<const std::uint8_t> usable, int i, int j);
  /// The polynomial through the values of the nodes of the last window.
  template <typename Values>
  Quadratic fit(const Values& values) const {
    Quadratic q;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const double value = values(nodes_[n].index);
      const std::array<double, 6>& row = rows_[n];
      q.value += row[0] * value, q.di += row[1] * value, q.dj += row[2] * value;
      q.ii += row[3] * value, q.ij += row[4] * value, q.jj += row[5] * value;
    }
    return q;
  }
  struct Node {
    std::size_t index;  ///< index in the grid
    int i, j;           ///< distance from the centre
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Factors with which the value of each node enters value, di, dj, ii, ij, jj.
  const std::vector<std::array<double, 6>>& rows() const { return rows_; }
  /// True if the whole window takes part.
  bool is_complete() const { return nodes_.size() == static_cast<std::size_t>(window_) * window_; }

 private:
  void collect(std::span<const std::uint8_t> usable, int i, int j);
  bool all_usable(std::span<const std::uint8_t> usable, int i, int j) const;
  void take_all(int i, int j);
  bool solve();

  int nx_, ny_, window_, half_, degree_;
  std::vector<std::uint8_t> reached_;
  std::vector<int> queue_;
  std::vector<Node> nodes_;
  std::vector<std::array<double, 6>> rows_, complete_;  ///< complete_: of a window without gaps
  bool rows_are_complete_ = false;
};

}  // namespace dic::stereo

#pragma once

#include <cstdint>
#include <dic/shared/strain.hpp>

/// Windows of nodes in which only those take part that are connected with the centre, for CPU and GPU.
namespace dic::stereo {

/// The nodes of a grid: (x0 + i * step, y0 + j * step) px.
struct NodeGrid {
  int nx, ny, x0, y0, step;

  DIC_HOST_DEVICE std::int64_t nodes() const { return std::int64_t{nx} * ny; }
  DIC_HOST_DEVICE int column(std::int64_t k) const { return static_cast<int>(k % nx); }
  DIC_HOST_DEVICE int row(std::int64_t k) const { return static_cast<int>(k / nx); }
  DIC_HOST_DEVICE double x(std::int64_t k) const { return x0 + column(k) * double(step); }
  DIC_HOST_DEVICE double y(std::int64_t k) const { return y0 + row(k) * double(step); }
};

/// A row of up to 127 nodes as bits.
struct WideBits {
  std::uint64_t low, high;

  DIC_HOST_DEVICE WideBits(std::uint64_t low_bits = 0, std::uint64_t high_bits = 0)
      : low(low_bits), high(high_bits) {}
  DIC_HOST_DEVICE WideBits operator|(const WideBits& o) const { return {low | o.low, high | o.high}; }
  DIC_HOST_DEVICE WideBits operator&(const WideBits& o) const { return {low & o.low, high & o.high}; }
  DIC_HOST_DEVICE WideBits& operator|=(const WideBits& o) { return *this = *this | o; }
  DIC_HOST_DEVICE WideBits& operator&=(const WideBits& o) { return *this = *this & o; }
  DIC_HOST_DEVICE bool operator==(const WideBits& o) const { return low == o.low && high == o.high; }
  DIC_HOST_DEVICE WideBits operator<<(int n) const {
    if (n == 0) return *this;
    if (n >= 64) return {0, low << (n - 64)};
    return {low << n, high << n | low >> (64 - n)};
  }
  DIC_HOST_DEVICE WideBits operator>>(int n) const {
    if (n == 0) return *this;
    if (n >= 64) return {high >> (n - 64), 0};
    return {low >> n | high << (64 - n), high >> n};
  }
};
DIC_HOST_DEVICE inline bool has_bit(std::uint64_t bits, int k) { return (bits >> k & 1) != 0; }
DIC_HOST_DEVICE inline bool has_bit(const WideBits& bits, int k) {
  return has_bit(k < 64 ? bits.low : bits.high, k % 64);
}

/// Bits of rows of up to kMost nodes. Fewer rows take less memory of a GPU's threads.
template <int kMost>
struct RowBits {
  using Type = std::uint64_t;
};
template <>
struct RowBits<127> {
  using Type = WideBits;
};

/// The usable nodes in the square window around a node that are connected with it, inside the window, by
/// steps to one of four neighbours, so that no gap is bridged. kMost: largest side of the window, 63 or less,
/// or 127.
template <int kMost>
class ConnectedNodes {
 public:
  using Bits = typename RowBits<kMost>::Type;

  /// usable: 1 for each node of the grid that may take part, which the centre k does.
  DIC_HOST_DEVICE ConnectedNodes(const NodeGrid& grid, const std::uint8_t* usable, std::int64_t k, int window)
      : nx_(grid.nx), centre_(k), window_(window), half_(window / 2) {
    const int i = grid.column(k), j = grid.row(k);
    const int first_x = i < half_ ? half_ - i : 0,
              last_x = grid.nx - 1 - i < half_ ? half_ + grid.nx - 1 - i : window - 1;
    first_ = j < half_ ? half_ - j : 0;
    last_ = grid.ny - 1 - j < half_ ? half_ + grid.ny - 1 - j : window - 1;
    bool is_whole = true;
    for (int row = first_; row <= last_; ++row) {
      const std::uint8_t* const nodes = usable + k + std::int64_t{row - half_} * nx_ - half_;
      Bits bits = 0;
      for (int x = first_x; x <= last_x; ++x)
        if (nodes[x])
          bits |= Bits(1) << x;
        else
          is_whole = false;
      reached_[row] = bits;
    }
    if (!is_whole) spread();
  }

  /// Calls visit(di, dj, node) row by row.
  template <typename Visit>
  DIC_HOST_DEVICE void for_each(const Visit& visit) const {
    for_each_row([&](int di, int dj, std::int64_t node) { visit(di, dj, node); }, [](int) {});
  }
  /// Does the same, and calls end_row(dj) after each row.
  template <typename Visit, typename EndRow>
  DIC_HOST_DEVICE void for_each_row(const Visit& visit, const EndRow& end_row) const {
    for (int row = first_; row <= last_; ++row) {
      const std::int64_t first = centre_ + std::int64_t{row - half_} * nx_ - half_;
      for (int x = 0; x < window_; ++x)
        if (has_bit(reached_[row], x)) visit(x - half_, row - half_, first + x);
      end_row(row - half_);
    }
  }

 private:
  DIC_HOST_DEVICE void spread() {
    Bits usable[kMost];
    for (int row = first_; row <= last_; ++row) usable[row] = reached_[row], reached_[row] = Bits(0);
    reached_[half_] = Bits(1) << half_;
    for (bool is_growing = true; is_growing;) {
      is_growing = false;
      const auto take_from = [&](int row, int beside) {
        Bits from = reached_[row];
        if (beside >= first_ && beside <= last_) from |= reached_[beside] & usable[row];
        const Bits all = strain::spread_along(from, usable[row], window_);
        if (!(all == reached_[row])) reached_[row] = all, is_growing = true;
      };
      for (int row = first_; row <= last_; ++row) take_from(row, row - 1);
      for (int row = last_; row >= first_; --row) take_from(row, row + 1);
    }
  }

  int nx_;
  std::int64_t centre_;
  int window_, half_, first_, last_;
  Bits reached_[kMost];
};

}  // namespace dic::stereo

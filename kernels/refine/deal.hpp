#pragma once

#include <algorithm>
#include <dic/shared/host_device.hpp>

namespace dic::kernels {

/// How a warp deals out the columns of a square subset. As many as fill all lanes go whole, a column to a
/// lane. Those that are left go whole too, or each is cut into pieces, a piece to a lane, over as many passes
/// as that takes.
struct Deal {
  int size;                  ///< of the subset, px
  int left;                  ///< columns that are cut, the last of the subset; none where `pieces` is 1
  int pieces;                ///< of a cut column
  int whole_passes, passes;  ///< over the whole columns; altogether
  int rows;                  ///< of the highest pieces
  int longer;                ///< pieces of that many rows, the first; the others are one row shorter

  static constexpr int lanes = 32;

  explicit Deal(int subset) : size(subset), left(subset % lanes), pieces(1) {
    for (int p = 2; p <= std::min(size, lanes); ++p)
      if (cost(p) < cost(pieces)) pieces = p;
    if (pieces == 1) left = 0;
    whole_passes = (whole() + lanes - 1) / lanes;
    passes = whole_passes + passes_of(pieces);
    rows = rows_of(pieces);
    longer = size - pieces * (rows - 1);
  }

  DIC_HOST_DEVICE int whole() const { return size - left; }
  /// Are some pieces one row shorter?
  DIC_HOST_DEVICE bool ragged() const { return longer < pieces; }
  /// First row of a piece, from 0; of piece number `pieces`, the end.
  DIC_HOST_DEVICE int first_row(int piece) const {
    return piece * (rows - 1) + (piece < longer ? piece : longer);
  }

 private:
  int passes_of(int p) const { return (left * p + lanes - 1) / lanes; }
  int rows_of(int p) const { return (size + p - 1) / p; }
  /// Rows' worth of work of the pieces.
  int cost(int p) const {
    constexpr int start = 10, odd_row = 5;  // of a pass, and of a last row that not every lane has
    return passes_of(p) * (rows_of(p) + start + (size % p != 0 ? odd_row : 0));
  }
};

}  // namespace dic::kernels

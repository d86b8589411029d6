#pragma once

#include <algorithm>
#include <dic/shared/host_device.hpp>

namespace dic::kernels {

/// Distribution of the columns of a square subset over the lanes of a warp. Columns that fill all lanes are
/// not cut: one column per lane. The remaining ones are not cut either, or each is cut into pieces, one piece
/// per lane, in as many passes as needed.
struct ColumnSchedule {
  int subset;                ///< side, px
  int cut_columns;           ///< number of cut columns, the last ones of the subset; 0 if `pieces` is 1
  int pieces;                ///< pieces per cut column
  int whole_passes, passes;  ///< passes over whole columns; all passes
  int piece_rows;            ///< rows of the longest pieces
  int longer;                ///< number of pieces, the first ones, that have piece_rows rows; the others have
                             ///< one row less

  static constexpr int lanes = 32;

  explicit ColumnSchedule(int subset_size) : subset(subset_size), cut_columns(subset % lanes), pieces(1) {
    for (int p = 2; p <= std::min(subset, lanes); ++p)
      if (cost(p) < cost(pieces)) pieces = p;
    if (pieces == 1) cut_columns = 0;
    whole_passes = (whole_columns() + lanes - 1) / lanes;
    passes = whole_passes + cut_passes(pieces);
    piece_rows = rows_per_piece(pieces);
    longer = subset - pieces * (piece_rows - 1);
  }

  DIC_HOST_DEVICE int whole_columns() const { return subset - cut_columns; }
  /// True if some pieces are one row shorter.
  DIC_HOST_DEVICE bool uneven() const { return longer < pieces; }
  /// First row of a piece, counted from 0. For piece number `pieces`: end of the last piece.
  DIC_HOST_DEVICE int first_row(int piece) const {
    return piece * (piece_rows - 1) + (piece < longer ? piece : longer);
  }

 private:
  int cut_passes(int p) const { return (cut_columns * p + lanes - 1) / lanes; }
  int rows_per_piece(int p) const { return (subset + p - 1) / p; }
  /// Time of the passes over pieces, in units of one row.
  int cost(int p) const {
    constexpr int start = 10, odd_row = 5;  // costs of a pass, and of a last row that only some lanes have
    return cut_passes(p) * (rows_per_piece(p) + start + (subset % p != 0 ? odd_row : 0));
  }
};

}  // namespace dic::kernels

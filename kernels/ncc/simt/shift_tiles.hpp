#pragma once

#include "common/host_device.hpp"

/// Tiling of cuda-registers along one axis. The host computes the sizes of blocks from it, kernels their part
/// of the work.
namespace dic::kernels {

/// Steps [first, last) of a tile; a step is `unit` elements of the reference, counted from the first of the
/// band.
struct Steps {
  int first, last;

  DIC_HOST_DEVICE int count() const { return last - first; }
};

/// Shifts are divided into tiles, each of which a thread computes. The reference is divided into bands, each
/// of which is in shared memory as a whole. A tile needs only the steps of a band that lie over the window.
/// The steps of a band are divided into groups: a thread computes the steps of one tile and one group.
struct ShiftAxis {
  int tile;  ///< shifts per tile
  int unit;  ///< elements per step: a power of two
  /// In a step, the shifts of a tile use the same elements of the reference (lead = 0), or of the window
  /// (lead = tile - 1). In the second case their elements of the reference are up to `lead` apart, and a band
  /// has `lead` more steps.
  int lead;
  int shift_min, shifts;
  int reference, window;  ///< numbers of elements
  int all_tiles = 0;
  int tiles = 0, blocks = 0;  ///< tiles per block
  int band = 0, bands = 0;    ///< elements per band, whole steps
  int steps_of_group = 0, groups = 0;

  DIC_HOST_DEVICE static int ceil(int value, int unit) { return (value + unit - 1) / unit; }
  DIC_HOST_DEVICE static int smaller(int a, int b) { return a < b ? a : b; }
  DIC_HOST_DEVICE static int larger(int a, int b) { return a > b ? a : b; }

  void set_bands(int elements) {
    band = elements;
    bands = ceil(reference, band);
  }
  int most_steps() const { return ceil(smaller(reference, band) + lead, unit); }
  /// Divides the steps into nearly equal groups.
  void set_groups(int count) {
    steps_of_group = ceil(most_steps(), count);
    groups = ceil(most_steps(), steps_of_group);
  }
  /// Divides the tiles into at least `count` blocks of equally many tiles.
  void set_blocks(int count) {
    all_tiles = ceil(shifts, tile);
    tiles = ceil(all_tiles, smaller(count, all_tiles));
    blocks = ceil(all_tiles, tiles);
  }

  DIC_HOST_DEVICE int band_begin(int index) const { return index * band; }
  DIC_HOST_DEVICE int band_end(int index) const { return smaller(reference, band_begin(index) + band); }
  DIC_HOST_DEVICE int shift_of(int tile_index) const { return shift_min + tile_index * tile; }
  DIC_HOST_DEVICE int shifts_of_block() const { return tile * tiles; }

  DIC_HOST_DEVICE Steps steps(int tile_index, int band_index) const {
    if (tile_index >= all_tiles) return {};
    const int begin = band_begin(band_index), shift = shift_of(tile_index);
    const int first = larger(0, -shift - (tile - 1 - lead) - begin);
    const int last = smaller(band_end(band_index) + lead, window - shift) - begin;
    return last > first ? Steps{first / unit, ceil(last, unit)} : Steps{};
  }
  /// The steps of a group. The tiles that have steps in a group are neighbours.
  DIC_HOST_DEVICE Steps group_steps(const Steps& all, int group) const {
    const int begin = group * steps_of_group;
    return {larger(all.first, begin), smaller(all.last, begin + steps_of_group)};
  }
};

}  // namespace dic::kernels

#pragma once

#include <cstdint>
#include <dic/kernels/index_list.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/kernels/search_windows.hpp>
#include <dic/shared/correlation.hpp>

/// Work on images of which only some rows (a band) are in device memory: finds the entries of a list that can
/// be done with these rows, and copies them with rows counted from the first one of the band. All pointers
/// are device memory.
namespace dic::kernels {

/// Division of the rows of a reference into bands; each subset lies in one of them.
struct RowBands {
  int height = 0;  ///< rows of the image
  int rows = 0;    ///< rows of a band
  int step = 0;    ///< rows from band to band; bands overlap, since subsets do

  RowBands() = default;
  RowBands(int image_height, int band_rows, int subset)
      : height(image_height), rows(band_rows), step(band_rows - subset + 1) {}

  DIC_HOST_DEVICE int count() const { return height <= rows ? 1 : (height - rows + step - 1) / step + 1; }
  DIC_HOST_DEVICE int band_of(int first_row) const {
    const int band = first_row / step, last = count() - 1;
    return band < last ? band : last;
  }
  RowRange rows_of(int band) const {
    return {band * step, band * step + rows < height ? band * step + rows : height};
  }
};

/// Rows that an entry of a list reads, limited to the image.
struct RowNeed {
  std::int32_t band;  ///< band of the reference; -1: the entry is done
  RowRange current;
};

/// Queues finding the rows that the subsets of a search and their windows need.
void launch_rows_of_windows(const SearchWindows& windows, const RowBands& bands, RowNeed* needs,
                            StreamHandle stream);

/// Refinements of images of which a band of the reference and some rows of the current image are in memory.
struct BandedTasks {
  const PreparedSubset* subsets = nullptr;
  const RefineTask* tasks = nullptr;
  RowBands bands;
  int current_rows = 0;      ///< largest number of rows of the current image
  RowNeed* needs = nullptr;  ///< per task
};
/// Queues finding the rows that the first `n` refinements are expected to need.
void launch_rows_of_tasks(const BandedTasks& refinements, std::int64_t n, int radius, StreamHandle stream);

/// The lowest band that has work, and the first row of the current image that is needed there: band * 2^32 +
/// row. All bits are set if no work is left.
using NextRows = std::uint64_t;
void launch_next_rows(const RowNeed* needs, std::int64_t n, NextRows* next, StreamHandle stream);
/// Queues listing the entries of a band that need only `current` rows, and marking them done.
void launch_take_entries(RowNeed* needs, std::int64_t n, int band, const RowRange& current,
                         std::int32_t* entries, std::int32_t* count, StreamHandle stream);

/// Queues copies of entries of a list; in the copies, rows are counted from `first_row` of the image.
void launch_gather_positions(const IndexList& entries, const PatchPosition* from, int first_row,
                             PatchPosition* to, StreamHandle stream);
void launch_gather_tasks(const IndexList& entries, const RefineTask* from, int first_row, RefineTask* to,
                         StreamHandle stream);

/// Queues copying the peaks of entries to their places in the whole list.
void launch_scatter_peaks(const IndexList& entries, const Peak* from, Peak* to, StreamHandle stream);
/// Queues copying the refinements of entries to their places in the whole list. Refinements that left the
/// loaded rows of the current image, but not the image itself (layout: of the whole image), are listed again
/// with the rows that they need, unless these are more than the memory holds.
void launch_scatter_results(const IndexList& entries, const RefineResult* from,
                            const BandedTasks& refinements, const PlaneLayout& layout, RefineResult* to,
                            StreamHandle stream);

}  // namespace dic::kernels

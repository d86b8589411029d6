#pragma once

#include <cstdint>
#include <dic/kernels/bands.hpp>
#include <dic/kernels/points.hpp>
#include <dic/track.hpp>
#include <optional>
#include <string>

#include "track/cuda/coarse.hpp"
#include "track/cuda/device_frame.hpp"
#include "track/cuda/subset_search.hpp"

namespace dic::track::cuda {

/// Rows of a frame in device memory.
class FrameRows {
 public:
  /// Queues their copy, with what a spline needs around them, unless they are there.
  void load(const DeviceFrame& frame, const kernels::RowRange& rows, const kernels::Stream& stream);
  /// Some of them as an image of their own.
  ImageView part(const kernels::RowRange& rows) const;
  /// The whole image, of which only these rows are there.
  ImageView whole() const;

 private:
  kernels::DeviceBuffer memory_;
  ImageView image_;  ///< on the host
  std::uint64_t frame_ = 0;
  kernels::RowRange rows_;
};

/// A reference whose frame lies on the host.
struct BandedReference {
  const DeviceFrame& frame;
  ImageView roi;                        ///< device memory; empty = everywhere
  const kernels::RefineReference& all;  ///< range and layout, no planes
};

/// Looks at images of which a GPU holds only some rows at a time: their frames lie on the host. Fixed bands
/// of the reference come one after the other, and with each the rows of the current image in which its
/// points are looked for: as often as it takes, if these are many. What is found does not depend on the
/// bands.
class ImageBands {
 public:
  /// rows: of a reference at once.
  ImageBands(const TrackOptions& options, int rows) : options_(options), rows_(rows) {}

  /// See PyramidSource.
  void each_band(const DeviceFrame& frame, const kernels::Stream& stream, const PyramidSource::Visit& visit);

  /// Queues all work of a reference's side, and its range. See kernels::launch_prepare_subsets.
  void prepare(const BandedReference& reference, kernels::GreyRange* range, const int* x, const int* y,
               std::int64_t count, kernels::PreparedSubset* subsets, float* matrices,
               const kernels::Stream& stream);
  /// See SubsetSearch::peaks. Returns the variant that ran. Waits for the device.
  std::string search(SubsetSearch& search, const BandedReference& reference, const DeviceFrame& current,
                     const SubsetWindows& windows, bool cut, Peak* peaks, const kernels::Stream& stream);
  /// See kernels::launch_refine. A subset that spreads over more rows than are there at once counts as
  /// outside the image. Waits for the device.
  void refine(const BandedReference& reference, const DeviceFrame& current,
              const kernels::PreparedSubset* subsets, const float* matrices, const kernels::RefineTask* tasks,
              std::int64_t count, kernels::RefineResult* results, const kernels::Stream& stream);

 private:
  /// Entries of a list that rows of both images suffice for.
  struct Part {
    kernels::RowRange reference, current;
    std::int64_t count;
  };

  kernels::RowBands bands(const ImageView& image) const {
    return {image.height, rows_, options_.refine.subset};
  }
  /// Room for the needs of `n` entries.
  kernels::RowNeed* needs(std::int64_t n) { return needs_.reserve<kernels::RowNeed>(n); }
  const std::int32_t* entries() const { return static_cast<const std::int32_t*>(entries_.data()); }
  /// Lists the entries that are next; none where all are done.
  std::optional<Part> next_part(std::int64_t n, const kernels::RowBands& bands,
                                const kernels::Stream& stream);
  template <typename T>
  T fetched(const T* value, const kernels::Stream& stream);

  kernels::RefineReference planes(const BandedReference& reference, const kernels::RowRange& rows,
                                  const kernels::Stream& stream);
  const kernels::CoefficientPair* coefficients(const DeviceFrame& current, const kernels::RowRange& rows,
                                               const kernels::Stream& stream);

  TrackOptions options_;
  int rows_;
  FrameRows reference_, current_;
  kernels::DeviceBuffer pixels_, rest_, coefficients_;  ///< of the rows that were asked for last
  kernels::DeviceBuffer needs_, next_, entries_, count_;
  kernels::DeviceBuffer positions_, peaks_, tasks_, results_;  ///< of a part
  kernels::PinnedBuffer on_host_;
};

/// bands: null where images are there as a whole. Bands and stream are used as long as the source is.
PyramidSource pyramid_source(ImageBands* bands, const DeviceFrame& frame, const kernels::Stream& stream);

}  // namespace dic::track::cuda

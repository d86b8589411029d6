#pragma once

#include <cstdint>
#include <dic/kernels/bands.hpp>
#include <dic/kernels/points.hpp>
#include <optional>
#include <string>

#include "track/cuda/image_access/image_access.hpp"

namespace dic::track::cuda {

/// Rows of a frame in device memory.
class FrameRows {
 public:
  /// Queues copying rows, with the rows around them that a spline needs, unless they are loaded already.
  void load(const DeviceFrame& frame, const kernels::RowRange& rows, const kernels::Stream& stream);
  /// Some of these rows as an image of their own.
  ImageView part(const kernels::RowRange& rows) const;
  /// The whole image, of which only these rows are loaded.
  ImageView whole() const;

 private:
  kernels::DeviceBuffer memory_;
  ImageView image_;  ///< the frame's image, on the host
  std::uint64_t frame_ = 0;
  kernels::RowRange rows_;
};

/// Images of which a GPU holds only some rows at a time: their frames are in pinned memory of the host. Fixed
/// bands of the reference are loaded one after the other, and with each the rows of the current image in
/// which its points are looked for: several times, if there are many. Results do not depend on the bands.
class BandedImages final : public ImageAccess {
 public:
  /// rows: of a reference that are held at once.
  BandedImages(const RefineOptions& options, int rows) : options_(options), rows_(rows) {}

  void prepare(ReferenceImage& reference, PlanesMemory& memory, const ReferenceSubsets& subsets,
               const kernels::Stream& stream) override;
  /// Waits for the device.
  void prepare_parts(const ReferenceImage& reference, const ReferenceSubsets& parts,
                     const kernels::RefineTasks& tasks, const kernels::Stream& stream) override;
  bool follows(const SubsetSearch&, const ImageView&, int, int) const override { return false; }
  bool parallel_streams() const override { return false; }  // the memory holds one band only
  /// Waits for the device.
  std::string find_peaks(SubsetSearch& search, const ReferenceImage& reference, const DeviceFrame& current,
                         const kernels::SearchWindows& windows, bool clipped, Peak* peaks,
                         const kernels::Stream& stream) override;
  /// A subset that spreads over more rows than are held at once counts as outside the image. Waits for the
  /// device.
  void refine(const ReferenceImage& reference, const DeviceFrame& current, const ReferenceSubsets& subsets,
              const kernels::RefineTasks& tasks, kernels::RefineResult* results,
              const kernels::Stream& stream, kernels::Event* most_done) override;
  PyramidSource pyramid_source(const DeviceFrame& frame, const kernels::Stream& stream) override;
  ImageView on_host(const DeviceFrame& frame, std::vector<std::byte>&, const kernels::Stream&) override {
    return frame.image;
  }

 private:
  /// Entries of a list that need no other rows than these of both images.
  struct Part {
    kernels::RowRange reference, current;
    std::int64_t count;
  };

  kernels::RowBands bands(const ImageView& image) const { return {image.height, rows_, options_.subset}; }
  /// Memory for the needed rows of `n` entries.
  kernels::RowNeed* needs(std::int64_t n) { return needs_.reserve<kernels::RowNeed>(n); }
  const std::int32_t* entries() const { return static_cast<const std::int32_t*>(entries_.data()); }
  /// Lists the entries of the next part; no value when all are done.
  std::optional<Part> next_part(std::int64_t n, const kernels::RowBands& bands,
                                const kernels::Stream& stream);
  template <typename T>
  T fetched(const T* value, const kernels::Stream& stream);

  void each_band(const DeviceFrame& frame, const kernels::Stream& stream, const PyramidSource::Visit& visit);
  kernels::RefineReference planes(const ReferenceImage& reference, const kernels::RowRange& rows,
                                  const kernels::Stream& stream);
  const kernels::CoefficientPair* coefficients(const DeviceFrame& current, const kernels::RowRange& rows,
                                               const kernels::Stream& stream);

  const RefineOptions options_;
  const int rows_;
  FrameRows reference_, current_;
  kernels::DeviceBuffer pixels_, rest_, coefficients_;  ///< planes of the rows that were requested last
  kernels::DeviceBuffer needs_, next_, entries_, count_;
  kernels::DeviceBuffer positions_, peaks_, tasks_, results_;  ///< working memory of a part
  kernels::PinnedBuffer on_host_;
};

}  // namespace dic::track::cuda

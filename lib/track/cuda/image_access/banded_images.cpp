#include "track/cuda/image_access/banded_images.hpp"

#include <algorithm>

#include "track/cuda/image_access/image_memory.hpp"

namespace dic::track::cuda {
namespace {

using kernels::PlaneLayout;
using kernels::RowRange;

/// Rows of an image in device memory as an image of their own; empty if the image is empty.
ImageView part_of(ImageView image, const RowRange& rows) {
  if (image.empty()) return image;
  image.data = image.row<std::byte>(rows.first);
  image.height = rows.count();
  return image;
}

/// Allocates some rows of a plane. Returns where pixel (0, 0) of the whole plane would be.
template <typename T>
T* plane_of(kernels::DeviceBuffer& memory, const PlaneLayout& layout, const RowRange& rows) {
  const PlaneLayout there(layout.width, rows.count());
  return memory.reserve<T>(there.elements()) + there.origin() -
         static_cast<std::ptrdiff_t>(rows.first) * layout.stride;
}

}  // namespace

void FrameRows::load(const DeviceFrame& frame, const RowRange& rows, const kernels::Stream& stream) {
  const RowRange needed = kernels::rows_for_spline(rows, frame.image.height);
  if (frame_ == frame.number && rows_ == needed) return;
  image_ = frame.image;
  frame_ = frame.number;
  rows_ = needed;
  const ImageView on_host = part_of(image_, rows_);
  const std::size_t bytes = on_host.row_bytes * on_host.height;
  kernels::upload(memory_.reserve(bytes), on_host.data, bytes, stream);
}

ImageView FrameRows::part(const RowRange& rows) const { return part_of(whole(), rows); }

ImageView FrameRows::whole() const {
  ImageView image = image_;
  image.data = static_cast<const std::byte*>(memory_.data()) - rows_.first * image.row_bytes;
  return image;
}

void BandedImages::each_band(const DeviceFrame& frame, const kernels::Stream& stream,
                             const PyramidSource::Visit& visit) {
  const int height = frame.image.height;
  for (int first = 0; first < height; first += rows_) {
    const RowRange rows{first, std::min(height, first + rows_)};
    reference_.load(frame, rows, stream);
    visit(reference_.part(rows), first);
  }
}

void BandedImages::prepare(ReferenceImage& reference, PlanesMemory& memory, const ReferenceSubsets& subsets,
                           const kernels::Stream& stream) {
  auto* range = memory.range.reserve<kernels::GreyRange>(1);
  reference.planes.range = range;
  kernels::fill(range, 0, sizeof(*range), stream.handle());
  each_band(reference.frame, stream, [&](const ImageView& rows, int) {
    kernels::launch_grey_range(rows, {0, rows.height}, range, stream.handle());
  });
  kernels::fill(subsets.prepared, 0, subsets.count * sizeof(*subsets.prepared), stream.handle());
  const kernels::RowBands all = bands(reference.frame.image);
  for (int band = 0; band < all.count(); ++band)
    kernels::launch_prepare_subsets(planes(reference, all.rows_of(band), stream), options_,
                                    {subsets.x, subsets.y, subsets.count},
                                    {subsets.prepared, subsets.matrices}, stream.handle());
}

void BandedImages::prepare_parts(const ReferenceImage& reference, const ReferenceSubsets& parts,
                                 const kernels::RefineTasks& tasks, const kernels::Stream& stream) {
  const kernels::RowBands all = bands(reference.frame.image);
  const std::int64_t count = tasks.max_count;
  kernels::launch_rows_of_tasks({parts.prepared, tasks.first, all, current_rows(rows_), needs(count)}, count,
                                options_.subset / 2, stream.handle());
  while (const auto part = next_part(count, all, stream))
    kernels::launch_prepare_parts(planes(reference, part->reference, stream), options_, count,
                                  tasks.count_on_device, {parts.prepared, parts.matrices}, stream.handle());
}

std::string BandedImages::find_peaks(SubsetSearch& search, const ReferenceImage& reference,
                                     const DeviceFrame& current, const kernels::SearchWindows& windows,
                                     bool clipped, Peak* peaks, const kernels::Stream& stream) {
  const kernels::RowBands all = bands(current.image);
  kernels::launch_rows_of_windows(windows, all, needs(windows.count), stream.handle());
  std::string variant;
  while (const auto part = next_part(windows.count, all, stream)) {
    reference_.load(reference.frame, part->reference, stream);
    current_.load(current, part->current, stream);
    const kernels::IndexList listed{entries(), part->count};
    kernels::SearchWindows some = windows;
    some.references = positions_.reserve<PatchPosition>(2 * windows.count);
    some.windows = some.references + part->count;
    some.count = part->count;
    kernels::launch_gather_positions(listed, windows.references, part->reference.first, some.references,
                                     stream.handle());
    kernels::launch_gather_positions(listed, windows.windows, part->current.first, some.windows,
                                     stream.handle());
    auto* found = peaks_.reserve<Peak>(windows.count);
    variant = search.peaks({reference_.part(part->reference), current_.part(part->current),
                            part_of(reference.roi, part->reference), clipped},
                           some, found, stream);
    kernels::launch_scatter_peaks(listed, found, peaks, stream.handle());
  }
  return variant;
}

void BandedImages::refine(const ReferenceImage& reference, const DeviceFrame& current,
                          const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks,
                          kernels::RefineResult* results, const kernels::Stream& stream, kernels::Event*) {
  const std::int64_t count = tasks.count_on_device ? fetched(tasks.count_on_device, stream) : tasks.max_count;
  const kernels::RowBands all = bands(current.image);
  const kernels::BandedTasks refinements{subsets.prepared, tasks.first, all, current_rows(rows_),
                                         needs(count)};
  kernels::launch_rows_of_tasks(refinements, count, options_.subset / 2, stream.handle());
  while (const auto part = next_part(count, all, stream)) {
    const kernels::IndexList listed{entries(), part->count};
    kernels::RefineReference some = planes(reference, part->reference, stream);
    some.layout = PlaneLayout(current.image.width, part->current.count());
    auto* own = tasks_.reserve<kernels::RefineTask>(count);
    auto* found = results_.reserve<kernels::RefineResult>(count);
    kernels::launch_gather_tasks(listed, tasks.first, part->current.first, own, stream.handle());
    kernels::launch_refine({some, coefficients(current, part->current, stream)}, options_,
                           {subsets.prepared, subsets.matrices},
                           {.first = own,
                            .max_count = part->count,
                            .most_residuals = tasks.most_residuals,
                            .are_parts = tasks.are_parts},
                           found, stream);
    kernels::launch_scatter_results(listed, found, refinements, reference.planes.layout, results,
                                    stream.handle());
  }
}

std::optional<BandedImages::Part> BandedImages::next_part(std::int64_t n, const kernels::RowBands& bands,
                                                          const kernels::Stream& stream) {
  auto* next = next_.reserve<kernels::NextRows>(1);
  kernels::launch_next_rows(needs(n), n, next, stream.handle());
  const kernels::NextRows rows = fetched(next, stream);
  if (rows == ~kernels::NextRows{0}) return std::nullopt;
  const int band = static_cast<int>(rows >> 32), first = static_cast<int>(rows & 0xffffffffu);
  Part part{bands.rows_of(band), {first, std::min(bands.height, first + current_rows(rows_))}, 0};
  auto* count = count_.reserve<std::int32_t>(1);
  kernels::launch_take_entries(needs(n), n, band, part.current, entries_.reserve<std::int32_t>(n), count,
                               stream.handle());
  part.count = fetched(count, stream);
  return part;
}

template <typename T>
T BandedImages::fetched(const T* value, const kernels::Stream& stream) {
  auto* to = on_host_.reserve<T>(1);
  kernels::download(to, value, sizeof(T), stream);
  stream.synchronize("a band of an image");
  return *to;
}

/// Loads these rows of the reference, and returns planes that contain only them.
kernels::RefineReference BandedImages::planes(const ReferenceImage& reference, const RowRange& rows,
                                              const kernels::Stream& stream) {
  reference_.load(reference.frame, rows, stream);
  kernels::RefineReference planes = reference.planes;
  auto* pixels = plane_of<kernels::ReferencePixel>(pixels_, planes.layout, rows);
  auto* rest = plane_of<std::uint32_t>(rest_, planes.layout, rows);
  kernels::launch_reference_pixels(reference_.whole(), rows, reference.roi, options_.interpolation,
                                   planes.range, {pixels, rest}, stream.handle());
  planes.pixels = pixels;
  planes.rest = rest;
  planes.rows = rows;
  return planes;
}

/// Computes the spline coefficients of these rows of the current image, as a plane of their own.
const kernels::CoefficientPair* BandedImages::coefficients(const DeviceFrame& current, const RowRange& rows,
                                                           const kernels::Stream& stream) {
  current_.load(current, rows, stream);
  const PlaneLayout layout(current.image.width, current.image.height);
  auto* plane = plane_of<kernels::CoefficientPair>(coefficients_, layout, rows);
  kernels::launch_spline_coefficients(current_.whole(), rows, options_.interpolation, plane, stream.handle());
  return plane + static_cast<std::ptrdiff_t>(rows.first) * layout.stride;
}

PyramidSource BandedImages::pyramid_source(const DeviceFrame& frame, const kernels::Stream& stream) {
  return {frame.image,
          [this, &frame, &stream](const PyramidSource::Visit& visit) { each_band(frame, stream, visit); }};
}

}  // namespace dic::track::cuda

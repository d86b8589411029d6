#include "track/cuda/image_bands.hpp"

#include <algorithm>

#include "track/cuda/image_memory.hpp"

namespace dic::track::cuda {
namespace {

using kernels::PlaneLayout;
using kernels::RowRange;

/// Rows of an image in device memory as an image of their own; an empty one remains so.
ImageView part_of(ImageView image, const RowRange& rows) {
  if (image.empty()) return image;
  image.data = image.row<std::byte>(rows.first);
  image.height = rows.count();
  return image;
}

/// A plane that has some rows: where its pixel (0, 0) would be.
template <typename T>
T* plane_of(kernels::DeviceBuffer& memory, const PlaneLayout& layout, const RowRange& rows) {
  const PlaneLayout there(layout.width, rows.count());
  return memory.reserve<T>(there.elements()) + there.origin() -
         static_cast<std::ptrdiff_t>(rows.first) * layout.stride;
}

}  // namespace

void FrameRows::load(const DeviceFrame& frame, const RowRange& rows, const kernels::Stream& stream) {
  const RowRange wanted = kernels::rows_for_spline(rows, frame.image.height);
  if (frame_ == frame.number && rows_ == wanted) return;
  image_ = frame.image;
  frame_ = frame.number;
  rows_ = wanted;
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

void ImageBands::each_band(const DeviceFrame& frame, const kernels::Stream& stream,
                           const PyramidSource::Visit& visit) {
  const int height = frame.image.height;
  for (int first = 0; first < height; first += rows_) {
    const RowRange rows{first, std::min(height, first + rows_)};
    reference_.load(frame, rows, stream);
    visit(reference_.part(rows), first);
  }
}

void ImageBands::prepare(const BandedReference& reference, kernels::GreyRange* range, const int* x,
                         const int* y, std::int64_t count, kernels::PreparedSubset* subsets, float* matrices,
                         const kernels::Stream& stream) {
  kernels::fill(range, 0, sizeof(*range), stream.handle());
  each_band(reference.frame, stream, [&](const ImageView& rows, int) {
    kernels::launch_grey_range(rows, {0, rows.height}, range, stream.handle());
  });
  kernels::fill(subsets, 0, count * sizeof(*subsets), stream.handle());
  const kernels::RowBands all = bands(reference.frame.image);
  for (int band = 0; band < all.count(); ++band)
    kernels::launch_prepare_subsets(planes(reference, all.rows_of(band), stream), options_.refine, x, y,
                                    count, subsets, matrices, stream.handle());
}

std::string ImageBands::search(SubsetSearch& search, const BandedReference& reference,
                               const DeviceFrame& current, const SubsetWindows& windows, bool cut,
                               Peak* peaks, const kernels::Stream& stream) {
  const kernels::RowBands all = bands(current.image);
  kernels::launch_rows_of_windows(windows.references, windows.windows, windows.count, windows.size,
                                  windows.range, all, needs(windows.count), stream.handle());
  std::string variant;
  while (const auto part = next_part(windows.count, all, stream)) {
    reference_.load(reference.frame, part->reference, stream);
    current_.load(current, part->current, stream);
    SubsetWindows some = windows;
    auto* references = positions_.reserve<PatchPosition>(2 * windows.count);
    some.references = references;
    some.windows = references + part->count;
    some.count = part->count;
    kernels::launch_gather_positions(entries(), some.count, windows.references, part->reference.first,
                                     references, stream.handle());
    kernels::launch_gather_positions(entries(), some.count, windows.windows, part->current.first,
                                     references + part->count, stream.handle());
    auto* found = peaks_.reserve<Peak>(windows.count);
    variant = search.peaks({reference_.part(part->reference), current_.part(part->current),
                            part_of(reference.roi, part->reference), cut},
                           some, found, stream);
    kernels::launch_scatter_peaks(entries(), some.count, found, peaks, stream.handle());
  }
  return variant;
}

void ImageBands::refine(const BandedReference& reference, const DeviceFrame& current,
                        const kernels::PreparedSubset* subsets, const float* matrices,
                        const kernels::RefineTask* tasks, std::int64_t count, kernels::RefineResult* results,
                        const kernels::Stream& stream) {
  const kernels::RowBands all = bands(current.image);
  const int most = current_rows(rows_);
  kernels::launch_rows_of_tasks(subsets, tasks, count, options_.refine.subset / 2, most, all, needs(count),
                                stream.handle());
  while (const auto part = next_part(count, all, stream)) {
    kernels::RefineReference some = planes(reference, part->reference, stream);
    some.layout = PlaneLayout(current.image.width, part->current.count());
    auto* own = tasks_.reserve<kernels::RefineTask>(count);
    auto* found = results_.reserve<kernels::RefineResult>(count);
    kernels::launch_gather_tasks(entries(), part->count, tasks, part->current.first, own, stream.handle());
    kernels::launch_refine(some, options_.refine, subsets, matrices,
                           coefficients(current, part->current, stream), {own, part->count}, found, stream);
    kernels::launch_scatter_results(entries(), part->count, reference.all, subsets, tasks, found, most, all,
                                    results, needs(count), stream.handle());
  }
}

std::optional<ImageBands::Part> ImageBands::next_part(std::int64_t n, const kernels::RowBands& bands,
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
T ImageBands::fetched(const T* value, const kernels::Stream& stream) {
  auto* to = on_host_.reserve<T>(1);
  kernels::download(to, value, sizeof(T), stream);
  stream.synchronize("a band of an image");
  return *to;
}

/// The reference's planes, of which only some rows are there.
kernels::RefineReference ImageBands::planes(const BandedReference& reference, const RowRange& rows,
                                            const kernels::Stream& stream) {
  reference_.load(reference.frame, rows, stream);
  kernels::RefineReference planes = reference.all;
  auto* pixels = plane_of<kernels::ReferencePixel>(pixels_, planes.layout, rows);
  auto* rest = plane_of<std::uint32_t>(rest_, planes.layout, rows);
  kernels::launch_reference_pixels(reference_.whole(), rows, reference.roi, options_.refine.interpolation,
                                   planes.range, pixels, rest, stream.handle());
  planes.pixels = pixels;
  planes.rest = rest;
  planes.rows = rows;
  return planes;
}

/// The plane of some rows of the current image, as if it had no others.
const kernels::CoefficientPair* ImageBands::coefficients(const DeviceFrame& current, const RowRange& rows,
                                                         const kernels::Stream& stream) {
  current_.load(current, rows, stream);
  const PlaneLayout layout(current.image.width, current.image.height);
  auto* plane = plane_of<kernels::CoefficientPair>(coefficients_, layout, rows);
  kernels::launch_spline_coefficients(current_.whole(), rows, options_.refine.interpolation, plane,
                                      stream.handle());
  return plane + static_cast<std::ptrdiff_t>(rows.first) * layout.stride;
}

PyramidSource pyramid_source(ImageBands* bands, const DeviceFrame& frame, const kernels::Stream& stream) {
  if (!bands) return frame.image;
  return {frame.image, [bands, &frame, &stream](const PyramidSource::Visit& visit) {
            bands->each_band(frame, stream, visit);
          }};
}

}  // namespace dic::track::cuda

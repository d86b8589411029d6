#include "track/cuda/device_coarse_search.hpp"

#include <algorithm>
#include <dic/kernels/pyramid.hpp>

namespace dic::track::cuda {
namespace {

std::ptrdiff_t pitch_of(int width) { return static_cast<std::ptrdiff_t>(kernels::device_pitch(width, 1)); }

kernels::DeviceImage image_of(const ImageView& view) {
  return {view.data, view.row_bytes, view.width, view.height};
}
/// A plane of the rows from `first` on; empty for an empty image.
kernels::DevicePlane<std::uint8_t> level_plane(const ImageView& view, int first = 0) {
  if (view.empty()) return {};
  return {const_cast<std::uint8_t*>(view.row<std::uint8_t>(first)), view.row_bytes};
}

}  // namespace

void DevicePyramid::place_levels(int width, int height, int first, int count, const kernels::Stream& stream) {
  std::size_t bytes = 0;
  std::vector<std::size_t> offsets;
  levels_.assign(count, {});
  for (int level = first; level < count; ++level) {
    const int w = width >> level, h = height >> level;
    levels_[level] = {.type = ScalarType::u8, .width = w, .height = h, .row_bytes = pitch_of(w)};
    offsets.push_back(bytes);
    bytes += pitch_of(w) * h;
  }
  const bool grows = bytes > pixels_.size();
  auto* pixels = pixels_.reserve<std::uint8_t>(bytes);
  // Zeroed because kernels read whole words, also beyond the ends of rows.
  if (grows) kernels::fill(pixels, 0, bytes, stream.handle());
  for (int level = first; level < count; ++level) levels_[level].data = pixels + offsets[level - first];
}

void DevicePyramid::build(const PyramidSource& source, const CoarseSearch& search,
                          const kernels::Stream& stream) {
  const ImageView& image = source.image;
  const int levels = search.levels();
  place_levels(image.width, image.height, search.uses_full_size() ? 0 : 1, levels, stream);
  auto* extrema = extrema_.reserve<kernels::Extrema>(image.height);
  int count = 0;
  source.each_band([&](const ImageView& rows, int) {
    kernels::launch_extrema(image_of(rows), rows.type, extrema + count, stream.handle());
    count += kernels::extrema_of_rows(rows.height);
  });
  source.each_band([&](const ImageView& rows, int first) {
    kernels::launch_stretched(image_of(rows), rows.type, extrema, count, level_plane(levels_[0], first),
                              levels > 1 ? level_plane(levels_[1], first / 2) : level_plane({}),
                              stream.handle());
  });
  for (int level = 2; level < levels; ++level)
    kernels::launch_halved(image_of(levels_[level - 1]), level_plane(levels_[level]), stream.handle());
}

CoarseReference::CoarseReference(const PyramidSource& source, ImageView roi, core::ThreadPool& pool,
                                 CoarseMemory& memory, const kernels::Stream& stream)
    : search_(source.image.width, source.image.height, roi, pool), memory_(memory), roi_(search_.levels()) {
  memory_.pyramid.build(source, search_, stream);
  memory_.roi.resize(search_.levels());
  for (int level = search_.uses_full_size() ? 0 : 1; level < search_.levels(); ++level) {
    const ImageView on_host = search_.roi(level);
    if (on_host.empty()) continue;
    const std::size_t bytes = on_host.row_bytes * on_host.height;
    roi_[level] = on_host;
    roi_[level].data = memory_.roi[level].reserve(bytes);
    kernels::upload(memory_.roi[level].data(), on_host.data, bytes, stream);
  }
}

CoarseField DeviceCoarseSearch::run(CoarseReference& reference, const PyramidSource& current,
                                    const kernels::Stream& stream) {
  current_.build(current, reference.search(), stream);
  reference_ = &reference;
  stream_ = &stream;
  kernels_.clear();
  return reference.search().run(*this);
}

/// Places the subsets of the nodes `which` and their windows; a window begins at window_of(index in `which`,
/// position of the subset).
template <typename WindowOf>
DeviceCoarseSearch::Placement DeviceCoarseSearch::place(const CoarseLattice& lattice,
                                                        std::span<const std::int64_t> which,
                                                        const WindowOf& window_of) {
  const std::size_t n = which.size();
  auto* references = host_positions_.reserve<PatchPosition>(2 * n);
  auto* device_references = positions_.reserve<PatchPosition>(2 * n);
  Placement nodes{{}, {}, references, references + n, device_references, device_references + n};
  nodes.order.reserve(n);
  lattice.shapes.by_shape(which, [&](const SubsetShape& shape, std::span<const std::size_t> members) {
    nodes.groups.push_back({shape, nodes.order.size(), members.size()});
    for (const std::size_t k : members) {
      const std::size_t i = nodes.order.size();
      nodes.references[i] = lattice.shapes.position(which[k]);
      nodes.windows[i] = window_of(k, nodes.references[i]);
      nodes.order.push_back(k);
    }
  });
  kernels::upload(device_references, references, 2 * n * sizeof(PatchPosition), *stream_);
  return nodes;
}

/// Finds placed nodes, with one job for each subset shape: shape_of(subset, count).
template <typename ShapeOf>
std::vector<FoundShift> DeviceCoarseSearch::find(const CoarseLattice& lattice, const Placement& nodes,
                                                 const ShapeOf& shape_of) {
  SearchImages images{reference_->image(lattice.level), current_.level(lattice.level),
                      reference_->roi(lattice.level)};
  auto* peaks = peaks_.reserve<Peak>(nodes.order.size());
  kernels::fill(peaks, 0, nodes.order.size() * sizeof(Peak), stream_->handle());  // including padding bytes
  for (const Group& group : nodes.groups) {
    images.clipped = group.shape.masked;
    kernels_.insert(search_.peaks(images, shape_of(group.shape, group.count),
                                  nodes.device_references + group.first, nodes.device_windows + group.first,
                                  peaks + group.first, *stream_));
  }
  return fetch(nodes);
}

std::vector<FoundShift> DeviceCoarseSearch::fetch(const Placement& nodes) {
  const std::size_t n = nodes.order.size();
  auto* peaks = host_peaks_.reserve<Peak>(n);
  kernels::download(peaks, peaks_.data(), n * sizeof(Peak), *stream_);
  stream_->synchronize("the coarse search");
  std::vector<FoundShift> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const PatchPosition &subset = nodes.references[i], &window = nodes.windows[i];
    out[nodes.order[i]] = found_shift(peaks[i], window.x - subset.x, window.y - subset.y);
  }
  return out;
}

std::vector<FoundShift> DeviceCoarseSearch::around(const CoarseLattice& lattice,
                                                   std::span<const std::int64_t> which,
                                                   std::span<const Prediction> predictions, int range) {
  const auto window_of = [&](std::size_t k, const PatchPosition& at) {
    return PatchPosition{0, at.x + predictions[k].u - range, at.y + predictions[k].v - range};
  };
  return find(lattice, place(lattice, which, window_of), [&](const SubsetShape& subset, std::int64_t count) {
    return CorrelateShape{.pairing = Pairing::one_to_one,
                          .reference = {subset.width, subset.height},
                          .search = {subset.width + 2 * range, subset.height + 2 * range},
                          .shifts = {0, 2 * range, 0, 2 * range},
                          .references = count,
                          .pairs = count};
  });
}

std::vector<FoundShift> DeviceCoarseSearch::everywhere(const CoarseLattice& lattice) {
  const ImageView& current = current_.level(lattice.level);
  const auto window_of = [](std::size_t, const PatchPosition&) { return PatchPosition{}; };
  return find(lattice, place(lattice, lattice.searched, window_of),
              [&](const SubsetShape& subset, std::int64_t count) {
                return CorrelateShape{
                    .pairing = Pairing::n_to_m,
                    .reference = {subset.width, subset.height},
                    .search = {current.width, current.height},
                    .shifts = Shifts::valid({subset.width, subset.height}, {current.width, current.height}),
                    .references = count,
                    .pairs = count};
              });
}

}  // namespace dic::track::cuda

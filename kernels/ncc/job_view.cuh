#pragma once

#include <dic/kernels/ncc.hpp>

#include "common/launch.cuh"
#include "ncc/types.hpp"

/// Common parts of all variants in a kernel: which reference is paired with which window, where patches lie,
/// which elements exist, element types. A variant supplies its own loop.
namespace dic::kernels {

/// One patch of a batch. Elements exist for x0 <= x < x1, y0 <= y < y1 (its size, clipped at the border of
/// the image); all others are zero.
template <typename T>
struct PatchView {
  const T* origin;  ///< element (0, 0), which may lie outside the image and is then never read
  std::ptrdiff_t row_bytes;
  int x0, x1, y0, y1;

  __device__ const T* row(int y) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(origin) + y * row_bytes);
  }
  /// Element x of a row that exists, or zero.
  __device__ T at_or_zero(const T* row_data, int x) const { return x >= x0 && x < x1 ? row_data[x] : T{0}; }
};

template <typename T>
__device__ PatchView<T> load_patch(const DevicePatches& patches, std::int64_t index) {
  const PatchPosition at = patches.positions[index];
  const DeviceImage image = patches.images[at.image];
  const auto* data = static_cast<const char*>(image.data) + at.y * image.row_bytes +
                     at.x * static_cast<std::ptrdiff_t>(sizeof(T));
  return {reinterpret_cast<const T*>(data),       image.row_bytes, max(0, -at.x),
          min(patches.width, image.width - at.x), max(0, -at.y),   min(patches.height, image.height - at.y)};
}

/// A job as kernels receive it.
struct JobView {
  DevicePatches reference, search;
  int dx_min, dy_min, nx, ny;
  std::int64_t first_pair, pairs;
  Pairing pairing;
  std::int64_t windows_per_reference;  ///< number m of windows per reference; pairs of one reference are
                                       ///< consecutive

  /// Reference of a pair; `pair` counts from first_pair.
  __device__ std::int64_t reference_of(std::int64_t pair) const {
    const std::int64_t whole = first_pair + pair;
    return windows_per_reference == 1 ? whole : whole / windows_per_reference;
  }
  __device__ std::int64_t window_of(std::int64_t pair) const {
    const std::int64_t whole = first_pair + pair;
    return pairing == Pairing::n_to_m ? whole % windows_per_reference : whole;
  }
};
inline JobView make_job_view(const NccJob& job) {
  const std::int64_t windows_per_reference = job.pairing == Pairing::one_to_one ? 1
                                             : job.pairing == Pairing::n_to_mn
                                                 ? job.search.count / job.reference.count
                                                 : job.search.count;
  return {job.reference,   job.search,     job.shifts.dx_min, job.shifts.dy_min, job.shifts.nx(),
          job.shifts.ny(), job.first_pair, job.pairs,         job.pairing,       windows_per_reference};
}

/// Rows and columns of a reference that lie over existing elements of a window at one shift.
struct Overlap {
  int x0, x1, y0, y1;  ///< range in the reference; empty if x0 >= x1 or y0 >= y1

  __device__ int width() const { return max(x1 - x0, 0); }
  __device__ int height() const { return max(y1 - y0, 0); }
};
template <typename T>
__device__ Overlap overlap(const PatchView<T>& reference, const PatchView<T>& window, int dx, int dy) {
  return {max(reference.x0, window.x0 - dx), min(reference.x1, window.x1 - dx),
          max(reference.y0, window.y0 - dy), min(reference.y1, window.y1 - dy)};
}

/// A rectangle of a patch; (y, x) is its first element.
struct PatchRectangle {
  int y, x;
  int rows, columns;
};

/// One output: a pair and a shift.
struct Output {
  std::int64_t pair;
  int dx, dy;
};
__device__ inline Output output_at(const JobView& view, std::int64_t index) {
  const int per_pair = view.nx * view.ny;
  const std::int64_t pair = index / per_pair;
  const int shift = static_cast<int>(index - pair * per_pair);
  return {pair, view.dx_min + shift % view.nx, view.dy_min + shift / view.nx};
}

/// Adds a * b to `sum` in the type of the sum: exact for integers (modulo 2^32 for u8).
template <typename Sum, typename T>
__device__ void multiply_add(Sum& sum, T a, T b) {
  sum += static_cast<Sum>(a) * static_cast<Sum>(b);
}

/// Calls visitor(TypePair<T, Sum>) with the job's types.
template <typename Visitor>
void visit_types(const NccJob& job, Visitor&& visitor) {
  AllTypes::visit(job, visitor);
}

}  // namespace dic::kernels

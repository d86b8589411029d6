#pragma once

#include <dic/shared/image_view.hpp>

#include "ncc/job_view.cuh"
#include "ncc/scoring/moments.cuh"

/// References of which only some elements count, packed: copied one below the other into an image of their
/// own, with zeros in place of the elements that do not count.
namespace dic::kernels::masked {

constexpr int threads = 128;
constexpr int warps = threads / warp_size;

/// Elements x0 .. x1 - 1 of the rows y0 .. y1 - 1.
struct Rectangle {
  int x0, x1, y0, y1;
  __device__ int count() const { return (x1 - x0) * (y1 - y0); }
};

/// Values of a reference that scores need.
template <typename T>
struct MaskedReference {
  Moments<T> moments;
  std::int64_t count;   ///< number of elements that count
  Rectangle existing;   ///< elements that exist
  Rectangle rectangle;  ///< the elements that count, if they form a rectangle; otherwise x1 is 0
};

/// Packed references. Rows of `pixels` are whole chunks of 16 bytes; rows of `bits` are whole words, with a
/// bit for every element that counts.
struct MaskedReferences {
  void* pixels;
  std::uint32_t* bits;
  void* records;  ///< one MaskedReference each
  DeviceImage* image;
  PatchPosition* positions;
  int row_elements, row_words;
};

/// Packs one reference per warp.
template <typename T>
__global__ void __launch_bounds__(threads)
    mask_references(const __grid_constant__ DevicePatches in, const DeviceImage* masks, std::int64_t first,
                    std::int64_t count, const __grid_constant__ MaskedReferences out) {
  const int lane = threadIdx.x % warp_size;
  for_each_task(count, warps, warp_index(), [&](std::int64_t task) {
    const auto reference = load_patch<T>(in, first + task);
    const auto mask =
        masks ? load_patch<std::uint8_t>({masks, in.positions, in.count, in.height, in.width}, first + task)
              : PatchView<std::uint8_t>{};
    const bool exists = reference.x0 < reference.x1 && reference.y0 < reference.y1;
    MomentSums<T> sums(exists ? reference.row(reference.y0)[reference.x0] : T{0});
    int counted = 0;
    Rectangle around{in.width, 0, in.height, 0};  // rectangle around the elements that this lane counts
    for (int word = 0; word < out.row_words; ++word) {
      const int x = word * warp_size + lane;
      const bool column_exists = x >= reference.x0 && x < reference.x1;
      T* pixel = static_cast<T*>(out.pixels) + task * in.height * out.row_elements + x;
      std::uint32_t* bits = out.bits + task * in.height * out.row_words + word;
#pragma unroll 4
      for (int y = 0; y < in.height; ++y, pixel += out.row_elements, bits += out.row_words) {
        const bool is_there = column_exists && y >= reference.y0 && y < reference.y1;
        const T element = is_there ? reference.row(y)[x] : T{0};
        const bool counts = is_there && (!masks || mask.row(y)[x] != 0);
        if (x < out.row_elements) *pixel = counts ? element : T{0};
        const std::uint32_t row = __ballot_sync(all_lanes, counts);
        if (lane == 0) *bits = row;
        if (counts) {
          sums.add(element);
          around = {min(around.x0, x), x + 1, min(around.y0, y), max(around.y1, y + 1)};
        }
        counted += __popc(row);
      }
    }
    sums.sum_over_warp();
    around = {__reduce_min_sync(all_lanes, around.x0), __reduce_max_sync(all_lanes, around.x1),
              __reduce_min_sync(all_lanes, around.y0), __reduce_max_sync(all_lanes, around.y1)};
    if (lane != 0) return;
    static_cast<MaskedReference<T>*>(out.records)[task] = {
        sums.moments(counted),
        counted,
        {reference.x0, reference.x1, reference.y0, reference.y1},
        counted > 0 && counted == around.count() ? around : Rectangle{}};
    out.positions[task] = {0, 0, static_cast<int>(task) * in.height};
    if (task == 0)
      *out.image = {out.pixels, out.row_elements * static_cast<std::ptrdiff_t>(sizeof(T)), in.width,
                    static_cast<int>(count) * in.height};
  });
}

/// The references of a job's pairs: a range of its references.
struct ReferenceRange {
  std::int64_t first, count;

  explicit ReferenceRange(const NccJob& job) {
    const std::int64_t m = make_job_view(job).windows_per_reference;
    first = job.first_pair / m;
    count = (job.first_pair + job.pairs - 1) / m - first + 1;
  }
};

/// Divides memory into parts; without memory, counts the bytes that they need.
class Arena {
 public:
  explicit Arena(void* memory) : memory_(static_cast<char*>(memory)) {}
  void* take(std::size_t bytes) {
    constexpr std::size_t alignment = 256;
    void* const part = memory_ + used_;
    used_ += (bytes + alignment - 1) / alignment * alignment;
    return part;
  }
  template <typename Row>
  Row* take(std::size_t count) {
    return static_cast<Row*>(take(count * sizeof(Row)));
  }
  std::size_t used() const { return used_; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

inline MaskedReferences place_references(const NccJob& job, Arena& arena) {
  constexpr std::size_t largest_record = sizeof(MaskedReference<double>);
  const std::size_t element = size_of(job.type), chunk = 16;
  const auto count = static_cast<std::size_t>(ReferenceRange(job).count);
  const std::size_t rows = count * job.reference.height;
  const std::size_t row_bytes = (job.reference.width * element + chunk - 1) / chunk * chunk;
  const int row_words = (job.reference.width + warp_size - 1) / warp_size;
  return {.pixels = arena.take(rows * row_bytes),
          .bits = arena.take<std::uint32_t>(rows * row_words),
          .records = arena.take(count * largest_record),
          .image = arena.take<DeviceImage>(1),
          .positions = arena.take<PatchPosition>(count),
          .row_elements = static_cast<int>(row_bytes / element),
          .row_words = row_words};
}

/// Queues packing the references of the job's pairs. Returns the job with the packed references.
inline NccJob with_masked_references(const NccJob& job, const MaskedReferences& references,
                                     StreamHandle stream) {
  const ReferenceRange range(job);
  visit_scalar(job.type, [&]<typename T>(T) {
    mask_references<T><<<grid_size(range.count, warps), threads, 0, stream>>>(
        job.reference, job.masks, range.first, range.count, references);
  });
  check_launch(describe("masking of the references", job));
  const std::int64_t m = make_job_view(job).windows_per_reference;
  NccJob packed = job;
  packed.reference.images = references.image;
  packed.reference.positions = references.positions;
  packed.reference.count = range.count;
  packed.first_pair -= range.first * m;
  if (job.pairing == Pairing::n_to_m) return packed;  // all references have the same windows
  packed.search.positions += range.first * m;
  packed.search.count = range.count * m;
  return packed;
}

}  // namespace dic::kernels::masked

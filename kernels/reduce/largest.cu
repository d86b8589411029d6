#include <dic/error.hpp>
#include <utility>

#include "reduce/segments.cuh"

// Elements become 64-bit keys, the value above the complement of the index, so that one comparison ranks them
// as the interface says and no two are equal. A block goes through a part of a segment and keeps its k best,
// sorted; pairs of such runs are merged until one is left.
namespace dic::kernels {
namespace {

using Key = unsigned long long;

constexpr int threads = 256;
constexpr int elements_per_step = 4;               ///< of a thread
constexpr int step = threads * elements_per_step;  ///< elements that a block looks at between two barriers
constexpr int capacity = 2 * step;                 ///< candidates, sorted together
static_assert(most_largest <= capacity);

constexpr Key no_key = 0;  ///< below the key of every element

/// Floats in the order of unsigned numbers, and back.
__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float unordered(unsigned bits) { return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits); }
__device__ Key key_of(float value, std::int64_t index) {
  if (value != value) return no_key;
  // -0 equals 0 and ranks with it.
  return Key{ordered(value == 0 ? 0.0F : value)} << 32 | ~static_cast<unsigned>(index);
}

/// Bitonic sort of `capacity` keys in shared memory, largest first, by the whole block.
__device__ void sort_descending(Key* keys) {
  for (int size = 2; size <= capacity; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < capacity / 2; i += threads) {
        const int low = 2 * i - i % distance, high = low + distance;
        const bool descending = (low & size) == 0;
        const Key a = keys[low], b = keys[high];
        if ((a < b) == descending) keys[low] = b, keys[high] = a;
      }
    }
  }
  __syncthreads();
}

/// How many of the first `rank` keys of two merged descending runs of k keys come from `a` (Green, Odeh &
/// Birk 2012): the smallest i such that a[i] does not belong before b[rank - i - 1].
__device__ int co_rank(int rank, const Key* a, const Key* b, int k) {
  int low = max(0, rank - k), high = min(rank, k);
  while (low < high) {
    const int i = (low + high) / 2;
    if (a[i] >= b[rank - i - 1])
      low = i + 1;
    else
      high = i;
  }
  return low;
}

/// The k best of two descending runs of k keys; each thread merges its stretch of the result.
__device__ void merge_runs(const Key* a, const Key* b, int k, Key* out) {
  const int stretch = (k + threads - 1) / threads;
  const int begin = min(k, static_cast<int>(threadIdx.x) * stretch), end = min(k, begin + stretch);
  int i = co_rank(begin, a, b, k), j = begin - i;
  for (int rank = begin; rank < end; ++rank) {
    // At most `rank` < k keys are gone of either run.
    out[rank] = a[i] >= b[j] ? a[i++] : b[j++];
  }
}

/// The best keys of one block: `best` is sorted, `candidates` wait for being merged with it.
struct Selection {
  Key best[2][most_largest];
  Key candidates[capacity];
  int waiting;
};

/// Merges the waiting candidates into best[current]; returns the new `current`. All threads call it.
__device__ int absorb(Selection& s, int k, int current) {
  for (int i = s.waiting + static_cast<int>(threadIdx.x); i < capacity; i += threads)
    s.candidates[i] = no_key;
  sort_descending(s.candidates);
  merge_runs(s.best[current], s.candidates, k, s.best[1 - current]);
  if (threadIdx.x == 0) s.waiting = 0;
  __syncthreads();
  return 1 - current;
}

__global__ void __launch_bounds__(threads)
    largest_of_parts(const __grid_constant__ Segments<float> in, const __grid_constant__ Parts parts, int k,
                     Key* runs) {
  __shared__ Selection s;
  for_each_task(in.count * parts.count, 1, 0, [&](std::int64_t task) {
    const float* segment = in.data + task / parts.count * in.stride;
    const auto part = static_cast<int>(task % parts.count);
    const std::int64_t end = parts.end(part, in.length);
    for (int i = threadIdx.x; i < k; i += threads) s.best[0][i] = no_key;
    if (threadIdx.x == 0) s.waiting = 0;
    int current = 0;
    __syncthreads();
    for (std::int64_t first = parts.begin(part, in.length); first < end; first += step) {
      const Key worst = s.best[current][k - 1];
#pragma unroll
      for (int e = 0; e < elements_per_step; ++e) {
        const std::int64_t i = first + e * threads + threadIdx.x;
        const Key key = i < end ? key_of(segment[i], i) : no_key;
        if (key > worst) s.candidates[atomicAdd(&s.waiting, 1)] = key;
      }
      __syncthreads();
      const bool full = s.waiting > capacity - step;
      __syncthreads();  // all have read the count before it grows again
      if (full) current = absorb(s, k, current);
    }
    current = absorb(s, k, current);
    for (int i = threadIdx.x; i < k; i += threads) runs[task * k + i] = s.best[current][i];
    __syncthreads();  // the selection is used again for the next task
  });
}

/// A block merges the runs 2 i and 2 i + 1 of a segment; the last of an odd number stays alone.
__global__ void __launch_bounds__(threads)
    merge_pairs(std::int64_t segments, int runs, int k, const Key* in, Key* out) {
  const int pairs = (runs + 1) / 2;
  for_each_task(segments * pairs, 1, 0, [&](std::int64_t task) {
    const auto pair = static_cast<int>(task % pairs);
    const Key* a = in + (task / pairs * runs + 2 * pair) * k;
    Key* merged = out + task * k;
    if (2 * pair + 1 < runs)
      merge_runs(a, a + k, k, merged);
    else
      for (int i = threadIdx.x; i < k; i += threads) merged[i] = a[i];
  });
}

__global__ void __launch_bounds__(threads)
    elements_of_keys(std::int64_t count, const Key* keys, Element<float>* out) {
  for_each_task(count, threads, threadIdx.x, [&](std::int64_t i) {
    const Key key = keys[i];
    out[i] = key == no_key ? Element<float>{0, -1}
                           : Element<float>{unordered(static_cast<unsigned>(key >> 32)),
                                            static_cast<std::int64_t>(~static_cast<unsigned>(key))};
  });
}

Parts parts_of(std::int64_t length) { return {length, 8 * step, 512}; }

}  // namespace

std::size_t largest_workspace_bytes(const Segments<float>& in, int k) {
  return 2 * sizeof(Key) * static_cast<std::size_t>(in.count) * parts_of(in.length).count * k;
}

void launch_largest(const Segments<float>& in, int k, Element<float>* out, void* workspace,
                    StreamHandle stream) {
  if (k < 1 || k > most_largest)
    throw UsageError("The k largest elements are found for k of 1 to " + std::to_string(most_largest) +
                     ", not " + std::to_string(k) + ".");
  if (in.length >= 0xffffffff)
    throw UsageError("The largest elements are found in segments shorter than 2^32 - 1, not of " +
                     std::to_string(in.length) + "; cut them into parts.");
  if (in.count == 0) return;
  const Parts parts = parts_of(in.length);
  auto* runs = static_cast<Key*>(workspace);
  auto* merged = runs + in.count * parts.count * k;
  largest_of_parts<<<grid_size(in.count * parts.count, 1), threads, 0, stream>>>(in, parts, k, runs);
  for (int left = parts.count; left > 1; left = (left + 1) / 2) {
    merge_pairs<<<grid_size(in.count * ((left + 1) / 2), 1), threads, 0, stream>>>(in.count, left, k, runs,
                                                                                   merged);
    std::swap(runs, merged);
  }
  elements_of_keys<<<grid_size(in.count * k, threads), threads, 0, stream>>>(in.count * k, runs, out);
  check_launch("largest elements (" + std::to_string(k) + " of " + std::to_string(in.count) +
               " segments of " + std::to_string(in.length) + ")");
}

}  // namespace dic::kernels

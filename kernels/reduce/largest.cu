#include <bit>
#include <dic/shared/error.hpp>
#include <utility>

#include "reduce/segments.cuh"

// Elements become 64-bit keys: the value in the upper half, the complement of the index in the lower half, so
// that one comparison ranks them as the interface says, and no two are equal. A block keeps the best keys of
// a part of a segment as a sorted run; pairs of runs are merged until one is left. The length of runs is a
// power of two >= k.
namespace dic::kernels {
namespace {

using Key = unsigned long long;

constexpr int threads = 256;
constexpr int stretch = 8;                         ///< keys that a thread sorts or merges
constexpr int capacity = threads * stretch;        ///< candidates, sorted together
constexpr int elements_per_step = 4;               ///< elements that a thread reads per step
constexpr int step = threads * elements_per_step;  ///< elements that a block reads between two barriers
static_assert(step <= capacity && most_largest <= capacity);

constexpr Key no_key = 0;  ///< smaller than the key of every element

/// Maps floats to unsigned numbers of the same order; unordered() maps them back.
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

/// Sorts a thread's keys, largest first, by exchanging neighbours.
__device__ void sort_own(Key (&keys)[stretch]) {
#pragma unroll
  for (int round = 0; round < stretch; ++round) {
#pragma unroll
    for (int i = round % 2; i + 1 < stretch; i += 2) {
      const Key larger = max(keys[i], keys[i + 1]), smaller = min(keys[i], keys[i + 1]);
      keys[i] = larger, keys[i + 1] = smaller;
    }
  }
}

/// Number of keys from `a` among the first `rank` keys of two merged runs (Green, Odeh & Birk 2012): the
/// smallest i such that a[i] does not belong before b[rank - i - 1].
__device__ int co_rank(int rank, const Key* a, const Key* b, int length) {
  int low = max(0, rank - length), high = min(rank, length);
  while (low < high) {
    const int i = (low + high) / 2;
    if (a[i] >= b[rank - i - 1])
      low = i + 1;
    else
      high = i;
  }
  return low;
}

/// Keys rank .. rank + stretch - 1 of two merged runs of `length` keys.
__device__ void merge_stretch(const Key* a, const Key* b, int length, int rank, Key (&merged)[stretch]) {
  int i = co_rank(rank, a, b, length), j = rank - i;
#pragma unroll
  for (Key& key : merged) key = i < length && (j == length || a[i] >= b[j]) ? a[i++] : b[j++];
}

__device__ void store(const Key (&keys)[stretch], Key* target) {
#pragma unroll
  for (int k = 0; k < stretch; ++k) target[k] = keys[k];
}

/// The best keys of one block, a sorted run, and candidates that are not merged with it yet.
struct Selection {
  Key best[most_largest];
  Key candidates[capacity];
  int waiting;
};

/// Merges the candidates into the best `run_length` keys. All threads must call it.
__device__ void absorb(Selection& s, int run_length) {
  const int first = threadIdx.x * stretch;
  int runs = run_length / stretch;  // lower bound; becomes a power of two that holds all candidates
  while (runs * stretch < s.waiting) runs *= 2;
  Key keys[stretch];
#pragma unroll
  for (int k = 0; k < stretch; ++k) {
    const int i = k * runs + threadIdx.x;
    keys[k] = threadIdx.x < runs && i < s.waiting ? s.candidates[i] : no_key;
  }
  __syncthreads();
  if (threadIdx.x < runs) {
    sort_own(keys);
    store(keys, s.candidates + first);
  }
  for (int length = stretch; runs > 1; runs /= 2) {
    // Merging two runs doubles the length; beyond run_length the worse half is dropped.
    const int merged_length = min(2 * length, run_length), pair = first / merged_length;
    const bool mine = pair < runs / 2;
    const Key* a = s.candidates + 2 * pair * length;
    __syncthreads();
    if (mine) merge_stretch(a, a + length, length, first % merged_length, keys);
    __syncthreads();
    if (mine) store(keys, s.candidates + first);
    length = merged_length;
  }
  __syncthreads();
  if (first < run_length) merge_stretch(s.best, s.candidates, run_length, first, keys);
  __syncthreads();
  if (first < run_length) store(keys, s.best + first);
  if (threadIdx.x == 0) s.waiting = 0;
  __syncthreads();
}

__device__ void wait_for_merging(Selection& s, Key key) { s.candidates[atomicAdd(&s.waiting, 1)] = key; }

/// Loads the keys of a thread's elements in [begin, end).
__device__ void load_keys(const float* segment, std::int64_t begin, std::int64_t end,
                          Key (&keys)[elements_per_step]) {
#pragma unroll
  for (int e = 0; e < elements_per_step; ++e) {
    const std::int64_t i = begin + e * threads + threadIdx.x;
    keys[e] = i < end ? key_of(segment[i], i) : no_key;
  }
}

/// Begins with the largest key of each thread: most other keys are then too small to become candidates.
__device__ void start_with_largest(Selection& s, int run_length, Key (&keys)[elements_per_step]) {
  Key largest = no_key;
#pragma unroll
  for (const Key key : keys) largest = max(largest, key);
#pragma unroll
  for (Key& key : keys)
    if (key == largest) key = no_key;
  if (largest > no_key) wait_for_merging(s, largest);
  __syncthreads();
  absorb(s, run_length);
}

__global__ void __launch_bounds__(threads)
    largest_of_parts(const __grid_constant__ Segments<float> in, const __grid_constant__ Parts parts, int k,
                     int run_length, Key* runs) {
  __shared__ Selection s;
  for_each_task(in.count * parts.count, 1, 0, [&](std::int64_t task) {
    const float* segment = in.data + task / parts.count * in.stride;
    const auto part = static_cast<int>(task % parts.count);
    const std::int64_t begin = parts.begin(part, in.length), end = parts.end(part, in.length);
    for (int i = threadIdx.x; i < run_length; i += threads) s.best[i] = no_key;
    if (threadIdx.x == 0) s.waiting = 0;
    Key keys[elements_per_step];
    load_keys(segment, begin, end, keys);
    __syncthreads();
    start_with_largest(s, run_length, keys);
    for (std::int64_t first = begin; first < end; first += step) {
      const Key worst = s.best[k - 1];
#pragma unroll
      for (const Key key : keys)
        if (key > worst) wait_for_merging(s, key);
      load_keys(segment, first + step, end, keys);
      __syncthreads();
      const bool full = s.waiting > capacity - step;
      __syncthreads();  // no thread may add to the count before all have read it
      if (full) absorb(s, run_length);
    }
    absorb(s, run_length);
    for (int i = threadIdx.x; i < run_length; i += threads) runs[task * run_length + i] = s.best[i];
    __syncthreads();  // the next task uses the selection again
  });
}

/// Merges the runs 2 i and 2 i + 1 of every segment; the last of an odd number is copied.
__global__ void __launch_bounds__(threads)
    merge_pairs(std::int64_t segments, int runs, int run_length, const Key* in, Key* out) {
  const int pairs = (runs + 1) / 2, stretches = run_length / stretch;
  for_each_task(segments * pairs * stretches, threads, threadIdx.x, [&](std::int64_t task) {
    const auto rank = static_cast<int>(task % stretches) * stretch;
    const std::int64_t pair_index = task / stretches;
    const auto pair = static_cast<int>(pair_index % pairs);
    const Key* a = in + (pair_index / pairs * runs + 2 * pair) * run_length;
    Key keys[stretch];
    if (2 * pair + 1 < runs)
      merge_stretch(a, a + run_length, run_length, rank, keys);
    else
      for (int k = 0; k < stretch; ++k) keys[k] = a[rank + k];
    store(keys, out + pair_index * run_length + rank);
  });
}

__global__ void __launch_bounds__(threads)
    elements_of_keys(std::int64_t count, int k, int run_length, const Key* runs, Element<float>* out) {
  for_each_task(count, threads, threadIdx.x, [&](std::int64_t i) {
    const Key key = runs[i / k * run_length + i % k];
    out[i] = key == no_key ? Element<float>{0, -1}
                           : Element<float>{unordered(static_cast<unsigned>(key >> 32)),
                                            static_cast<std::int64_t>(~static_cast<unsigned>(key))};
  });
}

Parts parts_of(std::int64_t length) { return {length, 8 * step, 512}; }
int length_of_runs(int k) {
  return std::max(stretch, static_cast<int>(std::bit_ceil(static_cast<unsigned>(k))));
}

}  // namespace

std::size_t largest_workspace_bytes(const Segments<float>& in, int k) {
  return 2 * sizeof(Key) * static_cast<std::size_t>(in.count) * parts_of(in.length).count * length_of_runs(k);
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
  const int run_length = length_of_runs(k);
  auto* runs = static_cast<Key*>(workspace);
  auto* merged = runs + in.count * parts.count * run_length;
  largest_of_parts<<<grid_size(in.count * parts.count, 1), threads, 0, stream>>>(in, parts, k, run_length,
                                                                                 runs);
  for (int left = parts.count; left > 1; left = (left + 1) / 2) {
    const std::int64_t stretches = in.count * ((left + 1) / 2) * (run_length / stretch);
    merge_pairs<<<grid_size(stretches, threads), threads, 0, stream>>>(in.count, left, run_length, runs,
                                                                       merged);
    std::swap(runs, merged);
  }
  elements_of_keys<<<grid_size(in.count * k, threads), threads, 0, stream>>>(in.count * k, k, run_length,
                                                                             runs, out);
  check_launch("largest elements (" + std::to_string(k) + " of " + std::to_string(in.count) +
               " segments of " + std::to_string(in.length) + ")");
}

}  // namespace dic::kernels

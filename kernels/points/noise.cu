#include "points/points.cuh"

// The median is found digit by digit: floats that are not negative have the order of their bits. A pass
// counts the next digit of the values that begin with the digits found so far; the counts determine that
// digit of the median.
namespace dic::kernels {
namespace {

constexpr int passes = 3;
constexpr int digits = 2048;  ///< number of values of an 11-bit digit; the last digit has 10 bits
constexpr int digits_of_thread = digits / point_threads;
constexpr unsigned missing = 0xffffffffu;  ///< value of a point that is not measured

__device__ constexpr int shift_of(int pass) { return pass == 0 ? 21 : pass == 1 ? 10 : 0; }
__device__ constexpr int bits_of(int pass) { return pass == passes - 1 ? 10 : 11; }

/// The leading digits of the median, and its rank among the values that begin with them.
struct Median {
  unsigned prefix = 0, rank = 0;
};

/// Number of values with a digit of this thread or a lower one. All threads of the block must call it.
__device__ unsigned up_to_own(unsigned own) {
  __shared__ unsigned sums[point_threads];
  for (int offset = 1; offset < point_threads; offset *= 2) {
    sums[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x >= offset) own += sums[threadIdx.x - offset];
    __syncthreads();
  }
  return own;
}

/// Finds the next digit of the median. All threads of the block must call it.
__device__ Median descend(Median median, int pass, const unsigned* counts) {
  __shared__ Median found;
  __shared__ unsigned total;
  unsigned own[digits_of_thread], sum = 0;
#pragma unroll
  for (int k = 0; k < digits_of_thread; ++k)
    sum += own[k] = counts[pass * digits + threadIdx.x * digits_of_thread + k];
  const unsigned up_to = up_to_own(sum);
  if (threadIdx.x == point_threads - 1) total = up_to;
  if (threadIdx.x == 0) found = {};
  __syncthreads();
  const unsigned rank = pass == 0 ? total / 2 : median.rank;
  unsigned before = up_to - sum;
#pragma unroll
  for (int k = 0; k < digits_of_thread; ++k) {
    const unsigned digit = threadIdx.x * digits_of_thread + k;
    if (rank >= before && rank - before < own[k])
      found = {median.prefix << bits_of(pass) | digit, rank - before};
    before += own[k];
  }
  __syncthreads();
  return found;
}

__device__ Median descend(int pass_count, const unsigned* counts) {
  Median median;
  for (int pass = 0; pass < pass_count; ++pass) {
    median = descend(median, pass, counts);
    __syncthreads();  // all must have read the median before the next is written
  }
  return median;
}

/// Counts the digits of the values of this block in shared memory. value(k, exists) returns the bits of value
/// k, or `missing`; whole warps call it.
template <typename Value>
__device__ void count_digits(std::int64_t n, int pass, unsigned prefix, unsigned* counts, Value&& value) {
  __shared__ unsigned block_counts[digits];
  for (int digit = threadIdx.x; digit < digits; digit += point_threads) block_counts[digit] = 0;
  __syncthreads();
  for_each_warp_of_points(PointRange{0, n}, [&](std::int32_t k, bool exists) {
    const unsigned bits = value(k, exists);
    const bool counts_here = pass == 0 || bits >> shift_of(pass - 1) == prefix;
    if (bits != missing && counts_here)
      atomicAdd(&block_counts[bits >> shift_of(pass) & ((1u << bits_of(pass)) - 1)], 1u);
  });
  __syncthreads();
  for (int digit = threadIdx.x; digit < digits; digit += point_threads)
    if (block_counts[digit] > 0) atomicAdd(&counts[pass * digits + digit], block_counts[digit]);
}

__global__ void __launch_bounds__(point_threads)
    count_first(const __grid_constant__ FramePoints points, const __grid_constant__ track::NoiseGains gains,
                int radius, unsigned* values, unsigned* counts) {
  __shared__ track::NoiseGains table;
  for (int k = threadIdx.x; k <= track::NoiseGains::kSteps; k += point_threads) table.gain[k] = gains.gain[k];
  __syncthreads();
  count_digits(points.grid.count, 0, 0, counts, [&](std::int32_t i, bool exists) {
    const TrackedPoint& point = load_together(points.tracked, exists ? i : -1);
    const RefineResult& r = point.result;
    unsigned bits = missing;
    if (exists && r.status == Status::ok)
      bits = __float_as_uint(static_cast<float>(
          track::noise_from_residual(table, joined(point.u, point.v, r.shape), r.residual_sd, radius)));
    if (exists) values[i] = bits;
    return bits;
  });
}

__global__ void __launch_bounds__(point_threads)
    count_next(std::int64_t n, int pass, const unsigned* values, unsigned* counts) {
  const unsigned prefix = descend(pass, counts).prefix;
  count_digits(n, pass, prefix, counts,
               [&](std::int32_t i, bool exists) { return exists ? values[i] : missing; });
}

__global__ void __launch_bounds__(point_threads) store_median(const unsigned* counts, double* noise) {
  const Median median = descend(passes, counts);
  if (threadIdx.x == 0) *noise = __uint_as_float(median.prefix);
}

}  // namespace

std::size_t noise_workspace_bytes(std::int64_t count) {
  return sizeof(unsigned) * (passes * digits + static_cast<std::size_t>(count));
}

void launch_estimate_noise(const GridPoints& points, const TrackedPoint* tracked,
                           const track::NoiseGains& gains, int radius, double* noise, void* workspace,
                           StreamHandle stream) {
  constexpr std::int64_t most_blocks = 1024;  // every block adds its counts to the total
  auto* counts = static_cast<unsigned*>(workspace);
  auto* values = counts + passes * digits;
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::int64_t>(grid_size(points.count, point_threads), 1, most_blocks));
  const unsigned few = std::min(blocks, 256u);  // every block finds the earlier digits anew
  fill(counts, 0, passes * digits * sizeof(unsigned), stream);
  count_first<<<blocks, point_threads, 0, stream>>>({points, tracked}, gains, radius, values, counts);
  for (int pass = 1; pass < passes; ++pass)
    count_next<<<few, point_threads, 0, stream>>>(points.count, pass, values, counts);
  store_median<<<1, point_threads, 0, stream>>>(counts, noise);
  check_launch(describe_points("noise", points.count));
}

}  // namespace dic::kernels

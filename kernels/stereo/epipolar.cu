#include <dic/kernels/surface.hpp>

#include "stereo/every_node.cuh"

namespace dic::kernels {
namespace {

// ---- Samples ----

constexpr int row_threads = 128, scan_threads = 1024;

/// Counts the distances of one row per block.
__global__ void __launch_bounds__(row_threads)
    count_distances(const __grid_constant__ stereo::EpipolarJob job, std::int32_t* row_counts) {
  for_each_task(job.grid.ny, 1, 0, [&](std::int64_t row) {
    int count = 0;
    for (int i = threadIdx.x; i < job.grid.nx; i += row_threads)
      count += job.has_distance(row * job.grid.nx + i);
    __shared__ int of_warps[row_threads / warp_size];
    count = warp_sum(count);
    if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
      count = 0;
      for (const int warp : of_warps) count += warp;
      row_counts[row] = count;
    }
    __syncthreads();
  });
}

/// Turns the counts of the rows into the number of distances before each of them, in one block.
__global__ void __launch_bounds__(scan_threads)
    number_rows(std::int32_t* rows, int count, std::int32_t* total) {
  __shared__ std::int32_t before[scan_threads];
  const int each = (count + scan_threads - 1) / scan_threads, thread = static_cast<int>(threadIdx.x);
  const int first = min(thread * each, count), last = min(first + each, count);
  std::int32_t sum = 0;
  for (int row = first; row < last; ++row) sum += rows[row];
  before[thread] = sum;
  __syncthreads();
  for (int distance = 1; distance < scan_threads; distance *= 2) {
    const std::int32_t other = thread >= distance ? before[thread - distance] : 0;
    __syncthreads();
    before[thread] += other;
    __syncthreads();
  }
  if (thread == scan_threads - 1) *total = before[thread];
  std::int32_t number = before[thread] - sum;
  for (int row = first; row < last; ++row) {
    const std::int32_t in_row = rows[row];
    rows[row] = number;
    number += in_row;
  }
}

/// Takes one sample per warp.
__global__ void __launch_bounds__(row_threads)
    take_samples(const __grid_constant__ stereo::EpipolarJob job, const std::int32_t* rows,
                 SampledDistances* sampled) {
  const int count = sampled->count, lane = static_cast<int>(threadIdx.x) % warp_size;
  for_each_task(min(count, stereo::kMostSamples), row_threads / warp_size, warp_index(), [&](std::int64_t n) {
    std::int64_t number =
        count <= stereo::kMostSamples ? n : stereo::sample_number(static_cast<int>(n), count);
    int row = 0, end = job.grid.ny;  // the last row that has at most `number` before it
    while (end - row > 1) {
      const int middle = (row + end) / 2;
      (rows[middle] <= number ? row : end) = middle;
    }
    number -= rows[row];
    for (int i0 = 0; i0 < job.grid.nx; i0 += warp_size) {
      const std::int64_t node = std::int64_t{row} * job.grid.nx + i0 + lane;
      const bool has = i0 + lane < job.grid.nx && job.has_distance(node);
      const unsigned found = __ballot_sync(all_lanes, has);
      const int here = __popc(found), before = __popc(found & ((1U << lane) - 1));
      if (has && before == number) sampled->samples[n] = job.sample(node);
      if (number < here) break;
      number -= here;
    }
  });
}

// The bits of floats without sign have the order of the floats: medians are found digit by digit, from the
// highest to the lowest, by counting.
constexpr int digits = 3, digit_bits = 11, bins = 1 << digit_bits;

/// Position of the lowest bit of a digit; the last digit has fewer bits.
__host__ __device__ constexpr int shift_of(int digit) { return digit == 0 ? 21 : digit == 1 ? 10 : 0; }
__host__ __device__ constexpr int bits_of(int digit) { return digit == 2 ? 10 : digit_bits; }

// ---- Common distance ----

constexpr int fit_threads = 256, fit_warps = fit_threads / warp_size;

/// Unsigned numbers in the order of all floats, and back.
__device__ std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
__device__ float from_ordered(std::uint32_t number) {
  return __uint_as_float(number ^ (number >> 31 ? 0x80000000u : 0xffffffffu));
}

/// The samples of a frame, to which one block fits a polynomial.
class FitOfBlock {
 public:
  struct Memory {
    std::uint32_t counts[bins], sums[fit_threads], prefix, rank;
    double parts[fit_warps][stereo::CommonSums::kCount];
    stereo::CommonSums all;
    stereo::CommonDistance common;
    bool is_settled;
  };

  __device__ FitOfBlock(const SampledDistances& sampled, Memory& memory)
      : samples_(sampled.samples), count_(min(sampled.count, stereo::kMostSamples)), memory_(memory) {}

  __device__ void run() {
    using Fit = stereo::CommonFit;
    const auto sample = [&](int n) { return samples_[n]; };
    stereo::CommonDistance& common = memory_.common;
    if (threadIdx.x < stereo::kCommonTerms) common.coefficients[threadIdx.x] = 0;
    const float middle = median([&](int n) { return sample(n).px; });
    if (threadIdx.x == 0)
      common.coefficients[0] = double(middle), memory_.is_settled = count_ < Fit::kFewPoints;
    __syncthreads();
    for (int round = 0; round < Fit::kRounds && !memory_.is_settled; ++round) {
      const double limit = Fit::limit(median([&](int n) { return fabs(offset(n)); }));
      sum_up(limit);
      if (threadIdx.x == 0) memory_.is_settled = Fit::settle(common, memory_.all.coefficients(), limit);
      __syncthreads();
    }
    const float scatter = median([&](int n) { return fabs(offset(n) / sample(n).sigma); });
    if (threadIdx.x == 0) common.scale = Fit::scale(scatter);
    __syncthreads();
  }

 private:
  __device__ double offset(int n) const {
    return samples_[n].px - memory_.common.at(samples_[n].x, samples_[n].y);
  }

  /// Weighted sums over all samples, added in one order.
  __device__ void sum_up(double limit) {
    constexpr int kCount = stereo::CommonSums::kCount;
    stereo::CommonSums own = stereo::CommonSums::zero();
    for (int n = threadIdx.x; n < count_; n += fit_threads)
      own.add(samples_[n], stereo::CommonFit::weight(offset(n), limit));
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const double sum = warp_sum(own.at[k]);
      if (threadIdx.x % warp_size == 0) memory_.parts[threadIdx.x / warp_size][k] = sum;
    }
    __syncthreads();
    if (threadIdx.x < kCount) {
      double sum = 0;
      for (int warp = 0; warp < fit_warps; ++warp) sum += memory_.parts[warp][threadIdx.x];
      memory_.all.at[threadIdx.x] = sum;
    }
    __syncthreads();
  }

  /// The median of value(n) over all samples; NaN if there are none.
  template <typename Value>
  __device__ float median(const Value& value) {
    if (threadIdx.x == 0) memory_.prefix = 0, memory_.rank = static_cast<std::uint32_t>(count_) / 2;
    for (int digit = 0; digit < digits; ++digit) {
      for (int k = threadIdx.x; k < bins; k += fit_threads) memory_.counts[k] = 0;
      __syncthreads();
      const int shift = shift_of(digit), bits = bits_of(digit);
      for (int n = threadIdx.x; n < count_; n += fit_threads) {
        const std::uint32_t number = ordered(static_cast<float>(value(n)));
        if (digit > 0 && number >> (shift + bits) != memory_.prefix) continue;
        atomicAdd(&memory_.counts[number >> shift & ((1U << bits) - 1)], 1U);
      }
      __syncthreads();
      find_digit_of_block(bits);
    }
    return count_ > 0 ? from_ordered(memory_.prefix) : __uint_as_float(0x7fc00000U);
  }

  /// Finds the next digit of the median from the counts.
  __device__ void find_digit_of_block(int bits) {
    constexpr int bins_of_thread = bins / fit_threads, threads_of_lane = fit_threads / warp_size;
    const int thread = static_cast<int>(threadIdx.x);
    std::uint32_t own = 0;
    for (int k = 0; k < bins_of_thread; ++k) own += memory_.counts[thread * bins_of_thread + k];
    memory_.sums[thread] = own;
    __syncthreads();
    if (thread < warp_size) {
      std::uint32_t of_lane = 0;
      for (int k = 0; k < threads_of_lane; ++k) of_lane += memory_.sums[thread * threads_of_lane + k];
      std::uint32_t up_to = of_lane;
#pragma unroll
      for (int distance = 1; distance < warp_size; distance *= 2) {
        const std::uint32_t other = __shfl_up_sync(all_lanes, up_to, distance);
        if (thread >= distance) up_to += other;
      }
      std::uint32_t rank = memory_.rank;
      __syncwarp();
      if (rank < up_to && rank >= up_to - of_lane) {
        rank -= up_to - of_lane;
        int at = thread * threads_of_lane;
        while (rank >= memory_.sums[at]) rank -= memory_.sums[at++];
        at *= bins_of_thread;
        while (rank >= memory_.counts[at]) rank -= memory_.counts[at++];
        memory_.prefix = memory_.prefix << bits | static_cast<std::uint32_t>(at);
        memory_.rank = rank;
      }
    }
    __syncthreads();
  }

  const stereo::EpipolarSample* const samples_;
  const int count_;
  Memory& memory_;
};

__global__ void __launch_bounds__(fit_threads)
    fit_common(const SampledDistances* sampled, stereo::CommonDistance* common) {
  __shared__ FitOfBlock::Memory memory;
  FitOfBlock(*sampled, memory).run();
  if (threadIdx.x == 0) *common = memory.common;
}

// ---- Medians of all distances ----

constexpr int quantities = 2;
constexpr int histogram_threads = 256, most_histogram_blocks = 264;

/// State of the search for a median, digit by digit.
struct Search {
  std::uint32_t prefix;  ///< the digits that are known
  std::uint32_t rank;    ///< its place among the values that begin with them
  std::uint32_t count;   ///< number of all values
};
struct MedianMemory {
  Search searches[quantities];
  std::uint32_t histograms[digits][quantities][bins];
};

__global__ void __launch_bounds__(histogram_threads)
    count_digits(const __grid_constant__ stereo::EpipolarJob job, int digit, MedianMemory* memory) {
  __shared__ std::uint32_t counts[quantities][bins];
  for (int k = threadIdx.x; k < quantities * bins; k += histogram_threads) counts[k / bins][k % bins] = 0;
  __syncthreads();
  const int shift = shift_of(digit), bits = bits_of(digit);
  for_each_task(job.grid.nodes(), histogram_threads, threadIdx.x, [&](std::int64_t node) {
    const float offset = job.offset[node];
    if (offset != offset) return;
    const float values[quantities] = {job.px[node], offset};
#pragma unroll
    for (int q = 0; q < quantities; ++q) {
      const std::uint32_t value = __float_as_uint(fabsf(values[q]));
      if (digit > 0 && value >> (shift + bits) != memory->searches[q].prefix) continue;
      atomicAdd(&counts[q][value >> shift & ((1U << bits) - 1)], 1U);
    }
  });
  __syncthreads();
  for (int k = threadIdx.x; k < quantities * bins; k += histogram_threads)
    if (const std::uint32_t count = counts[k / bins][k % bins]; count > 0)
      atomicAdd(&memory->histograms[digit][k / bins][k % bins], count);
}

/// Finds a digit of one median per block.
__global__ void __launch_bounds__(histogram_threads)
    find_digit(int digit, MedianMemory* memory, EpipolarMedians* medians) {
  constexpr int each = bins / histogram_threads;
  __shared__ std::uint32_t sums[histogram_threads];
  const int q = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const std::uint32_t* const histogram = memory->histograms[digit][q];
  std::uint32_t sum = 0;
  for (int k = 0; k < each; ++k) sum += histogram[thread * each + k];
  sums[thread] = sum;
  __syncthreads();
  if (thread != 0) return;
  Search search = memory->searches[q];
  if (digit == 0) {
    search = {0, 0, 0};
    for (const std::uint32_t some : sums) search.count += some;
    search.rank = search.count / 2;
  }
  int bin = 0;
  for (int k = 0; k < histogram_threads - 1 && search.rank >= sums[k]; ++k)
    search.rank -= sums[k], bin += each;
  for (int k = 0; k < each - 1 && search.rank >= histogram[bin]; ++k) search.rank -= histogram[bin++];
  search.prefix = search.prefix << bits_of(digit) | static_cast<std::uint32_t>(bin);
  memory->searches[q] = search;
  if (digit < digits - 1) return;
  const float median = search.count > 0 ? __uint_as_float(search.prefix) : __uint_as_float(0x7fc00000U);
  (q == 0 ? medians->distance : medians->offset) = median;
}

}  // namespace

std::size_t sample_workspace_bytes(const stereo::NodeGrid& grid) { return grid.ny * sizeof(std::int32_t); }

void launch_sample_distances(const stereo::EpipolarJob& job, SampledDistances* samples, void* workspace,
                             StreamHandle stream) {
  auto* const rows = static_cast<std::int32_t*>(workspace);
  count_distances<<<grid_size(job.grid.ny, 1), row_threads, 0, stream>>>(job, rows);
  number_rows<<<1, scan_threads, 0, stream>>>(rows, job.grid.ny, &samples->count);
  take_samples<<<grid_size(stereo::kMostSamples, row_threads / warp_size), row_threads, 0, stream>>>(
      job, rows, samples);
  check_launch(describe("the epipolar distances", job.grid));
}

void launch_fit_common_distance(const SampledDistances* samples, stereo::CommonDistance* common,
                                StreamHandle stream) {
  fit_common<<<1, fit_threads, 0, stream>>>(samples, common);
  check_launch("the fit of epipolar distances");
}

std::size_t median_workspace_bytes() { return sizeof(MedianMemory); }

void launch_mark_contradictions(const stereo::EpipolarJob& job, const stereo::CommonDistance* common,
                                StreamHandle stream) {
  const std::int64_t nodes = job.grid.nodes();
  launch_at_every_node(stereo::FindOffset{job, common}, nodes, stream);
  launch_at_every_node(stereo::MarkContradiction{job, common}, nodes, stream);
  check_launch(describe("the epipolar check", job.grid));
}

void launch_epipolar_medians(const stereo::EpipolarJob& job, EpipolarMedians* medians, void* workspace,
                             StreamHandle stream) {
  const std::int64_t nodes = job.grid.nodes();
  auto* const memory = static_cast<MedianMemory*>(workspace);
  fill(memory, 0, sizeof(MedianMemory), stream);
  const unsigned blocks = std::min<unsigned>(grid_size(nodes, histogram_threads), most_histogram_blocks);
  for (int digit = 0; digit < digits; ++digit) {
    count_digits<<<blocks, histogram_threads, 0, stream>>>(job, digit, memory);
    find_digit<<<quantities, histogram_threads, 0, stream>>>(digit, memory, medians);
  }
  check_launch(describe("the medians of epipolar distances", job.grid));
}

}  // namespace dic::kernels

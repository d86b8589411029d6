#include <algorithm>
#include <climits>
#include <limits>

#include "fft/fused_transform.hpp"
#include "fft/transform_job.cuh"
#include "ncc/pair_groups.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int largest_length = 128;

template <int B>
__constant__ constexpr Twiddles<B> twiddles = make_twiddles<B>();

/// Number of pairs that a block processes at the same time: enough for several whole warps.
template <int B>
constexpr int pairs_per_block = B < 4 ? 4 : 1;
template <int B>
constexpr int threads_per_block = pairs_per_block<B>* FusedTransform<B>::threads;

/// True if the spectrum of a reference is in shared memory; it is in global memory if two blocks per
/// multiprocessor would not fit otherwise. Every thread reads only the part that it wrote itself.
template <int B>
constexpr bool spectrum_is_shared = B < 8;
template <int B>
constexpr int elements_per_pair = FusedTransform<B>::elements +
                                  (spectrum_is_shared<B> ? FusedTransform<B>::spectrum_elements : 0);
/// Largest number of windows per transform of their reference: with more, that transform costs little anyway.
template <int B>
constexpr int most_windows = 32 / pairs_per_block<B>;

/// One transform after the other: round 0 is the reference, round k window k - 1.
struct FusedRound {
  PaddedMatrix matrix;
  std::int64_t origin;  ///< origin of the pair's surface
  bool is_stored;
};
template <int B>
using FusedRounds = FusedRound[pairs_per_block<B>][1 + most_windows<B>];

template <int B>
constexpr int shared_bytes = pairs_per_block<B>* elements_per_pair<B>* static_cast<int>(sizeof(Complex));

/// As many blocks as fit into the shared memory of Hopper (each needs 1 KB more), with 64 registers per
/// thread.
template <int B>
constexpr int blocks_per_multiprocessor =
    std::min(1024 / threads_per_block<B>,
             228 * 1024 / (shared_bytes<B> + 1024 + static_cast<int>(sizeof(FusedRounds<B>))));

__device__ FusedRound make_round(const JobView& view, const TransformShape& shape, std::int64_t first, int k,
                                 bool is_stored) {
  if (k == 0)
    return {padded(load_patch<float>(view.reference, view.reference_of(first)), shape.reference_y,
                   shape.reference_x),
            0, false};
  const std::int64_t pair = first + (is_stored ? k - 1 : 0);
  return {padded(load_patch<float>(view.search, view.window_of(pair)), shape.y, shape.x),
          surface_origin(view, shape, pair), is_stored};
}

/// True if the pairs of a block need no barriers for each other: each has a block or a warp of its own.
template <int B>
constexpr bool pairs_are_independent = pairs_per_block<B> == 1 || FusedTransform<B>::threads == warp_size;
template <int B>
__device__ void wait_for_pair() {
  if constexpr (FusedTransform<B>::threads == warp_size)
    __syncwarp();
  else
    __syncthreads();
}

/// Processes one reference and a group of its windows with FusedTransform<B>::threads threads.
template <int B>
__global__ void __launch_bounds__(threads_per_block<B>, blocks_per_multiprocessor<B>)
    fused_fft(const __grid_constant__ JobView view, const __grid_constant__ PairGroups groups,
              const __grid_constant__ TransformShape shape, Complex* spectra, float* out) {
  using Transform = FusedTransform<B>;
  extern __shared__ Complex planes[];
  __shared__ FusedRounds<B> rounds_of_place;
  const int place = threadIdx.x / Transform::threads;
  int thread = threadIdx.x % Transform::threads;
  FusedRound* const rounds = rounds_of_place[place];
  Complex* const z = planes + place * elements_per_pair<B>;
  Complex* const spectrum = spectrum_is_shared<B> ? z + Transform::elements
                                                  : spectra + (blockIdx.x * pairs_per_block<B> + place) *
                                                                  Transform::spectrum_elements;
  const std::int64_t step = std::int64_t{gridDim.x} * pairs_per_block<B>;
  for (std::int64_t base = std::int64_t{blockIdx.x} * pairs_per_block<B>; base < groups.count();
       base += step) {
    const bool exists = base + place < groups.count();
    const PairRange pairs = groups.pairs(view, groups.group(exists ? base + place : base));
    const auto count = exists ? static_cast<int>(pairs.end - pairs.begin) : 0;
    const int windows = pairs_are_independent<B> ? count : groups.windows_per_group;
    // Addresses of all matrices are loaded together: one wait instead of one per window.
    for (int k = thread; k <= windows; k += Transform::threads)
      rounds[k] = make_round(view, shape, pairs.begin, k, k <= count);
    wait_for_pair<B>();
    for (int k = 0; k <= windows; ++k) {
      asm volatile(""
                   : "+r"(thread));  // makes the compiler compute indices again instead of keeping them in
                                     // registers over all passes
      const int rows = k == 0 ? shape.reference_rows : shape.window_rows;
      Transform::rows_first(thread, rows, z, rounds[k].matrix);
      wait_for_pair<B>();
      Transform::rows_second(thread, rows, twiddles<B>, z);
      wait_for_pair<B>();
      Transform::columns_first(thread, rows, z);
      wait_for_pair<B>();
      if (k == 0) {
        Transform::keep_spectrum(thread, twiddles<B>, z, spectrum);
        wait_for_pair<B>();
        continue;
      }
      Transform::multiply(thread, twiddles<B>, spectrum, z);
      wait_for_pair<B>();
      Transform::columns_back(thread, z);
      wait_for_pair<B>();
      Transform::rows_back_first(thread, shape.output_rows, twiddles<B>, z);
      wait_for_pair<B>();
      if (rounds[k].is_stored)
        Transform::rows_back_second(thread, shape.output_rows, z,
                                    TransformOutput<B>{shape, view.nx, out + rounds[k].origin});
      wait_for_pair<B>();
    }
  }
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&value, attribute, device), "Reading an attribute of the device");
  return value;
}

/// Variant for few pairs, each with a block of its own: half of the threads transform the reference, half the
/// window.
template <int B>
__global__ void __launch_bounds__(2 * FusedTransform<B>::threads, 1)
    fused_fft_of_pair(const __grid_constant__ JobView view, const __grid_constant__ TransformShape shape,
                      float* out) {
  using Transform = FusedTransform<B>;
  extern __shared__ Complex planes[];
  const bool has_window = threadIdx.x >= Transform::threads;
  const int thread = threadIdx.x % Transform::threads;
  const int rows = has_window ? shape.window_rows : shape.reference_rows;
  Complex* const z = planes + (has_window ? Transform::elements : 0);
  const FusedRound round = make_round(view, shape, blockIdx.x, has_window ? 1 : 0, true);
  Transform::rows_first(thread, rows, z, round.matrix);
  __syncthreads();
  Transform::rows_second(thread, rows, twiddles<B>, z);
  __syncthreads();
  Transform::columns_first(thread, rows, z);
  __syncthreads();
  Transform::multiply_columns(threadIdx.x, twiddles<B>, planes, planes + Transform::elements);
  __syncthreads();
  if (has_window) Transform::columns_back(thread, z);
  __syncthreads();
  if (has_window) Transform::rows_back_first(thread, shape.output_rows, twiddles<B>, z);
  __syncthreads();
  if (has_window)
    Transform::rows_back_second(thread, shape.output_rows, z,
                                TransformOutput<B>{shape, view.nx, out + round.origin});
}

/// Most pairs that get a block each: windows do not wait for each other, but the reference is transformed for
/// each.
constexpr std::int64_t most_pairs_alone = 128;
template <int B>
constexpr int bytes_of_pair = 2 * FusedTransform<B>::elements* static_cast<int>(sizeof(Complex));

/// True if each pair can have a block. Decided for the whole job, so that all its parts are rounded equally.
template <int B>
bool pairs_go_alone(const NccJob& job) {
  const std::int64_t references = job.pairing == Pairing::n_to_m ? job.reference.count : 1;
  return references * job.search.count <= most_pairs_alone &&
         bytes_of_pair<B> <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

template <int B>
void launch_pairs(const NccJob& job, float* out, StreamHandle stream) {
  constexpr int bytes = bytes_of_pair<B>;
  if (48 * 1024 < bytes)  // exceeds the limit that every block has by default
    check(cudaFuncSetAttribute(fused_fft_of_pair<B>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "Reserving shared memory for cuda-fft-fused");
  fused_fft_of_pair<B><<<static_cast<unsigned>(job.pairs), 2 * FusedTransform<B>::threads, bytes, stream>>>(
      make_job_view(job), make_shape<B>(job), out);
}

/// Number of windows per group that also fills the last wave of blocks. A reference costs as much as 0.4
/// windows.
int group_size(const JobView& view, int most, std::int64_t places) {
  constexpr double cost_of_reference = 0.4;
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int size = 1; size <= std::min<std::int64_t>(most, view.windows_per_reference); ++size) {
    const std::int64_t waves = (PairGroups(view, 1, size).count() + places - 1) / places;
    const double cost = static_cast<double>(waves) * (size + cost_of_reference);
    if (cost < least) least = cost, best = size;
  }
  return best;
}

template <int B>
void launch(const NccJob& job, float* out, Workspace& workspace, StreamHandle stream) {
  if (pairs_go_alone<B>(job)) return launch_pairs<B>(job, out, stream);
  constexpr int per_block = pairs_per_block<B>, threads = threads_per_block<B>;
  if (40 * 1024 < shared_bytes<B>)  // exceeds the limit that every block has by default
    check(cudaFuncSetAttribute(fused_fft<B>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<B>),
          "Reserving shared memory for cuda-fft-fused");
  const JobView view = make_job_view(job);
  const std::int64_t resident =
      std::int64_t{device_attribute(cudaDevAttrMultiProcessorCount)} * blocks_per_multiprocessor<B>;
  const PairGroups groups(view, 1, group_size(view, most_windows<B>, per_block * resident));
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      grid_size(groups.count(), per_block), spectrum_is_shared<B> ? INT_MAX : resident));
  Complex* spectra = nullptr;
  if (!spectrum_is_shared<B>)
    spectra = static_cast<Complex*>(workspace.memory().reserve(
        blocks * per_block * FusedTransform<B>::spectrum_elements * sizeof(Complex)));
  fused_fft<B><<<blocks, threads, shared_bytes<B>, stream>>>(view, groups, make_shape<B>(job), spectra, out);
}

}  // namespace

std::string FftFused::unsupported_reason(const NccJob& job) {
  if (job.sums != SurfaceType::f32) return "cuda-fft-fused sums in f32 only: use cuda-fft.";
  if (least_length(job) > largest_length)
    return "cuda-fft-fused does transforms of at most 128x128: use cuda-fft.";
  return {};
}

void FftFused::launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  auto* const sums = static_cast<float*>(out);
  if (!clear_empty_shifts(job, sums, stream)) return;
  const int length = least_length(job);
  if (length <= 32) return launch<2>(job, sums, workspace, stream);
  if (length <= 48) return launch<3>(job, sums, workspace, stream);
  if (length <= 64) return launch<4>(job, sums, workspace, stream);
  if (length <= 96) return launch<6>(job, sums, workspace, stream);
  launch<8>(job, sums, workspace, stream);
}

}  // namespace dic::kernels

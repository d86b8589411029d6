#include <algorithm>
#include <climits>
#include <limits>

#include "fft/axis.hpp"
#include "fft/fused_transform.hpp"
#include "fft/window_groups.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int largest_length = 128;

template <int B>
__constant__ constexpr FusedTwiddles<B> twiddles = make_fused_twiddles<B>();

/// Pairs that a block does side by side, so that it has whole warps and enough of them.
template <int B>
constexpr int pairs_per_block = B < 4 ? 4 : 1;
template <int B>
constexpr int threads_per_block = pairs_per_block<B>* FusedTransform<B>::threads;

/// The spectrum of a reference, of which every thread reads what it wrote, lies in global memory where two
/// blocks on a multiprocessor could not have it in shared memory.
template <int B>
constexpr bool spectrum_is_shared = B < 8;
template <int B>
constexpr int elements_per_pair = FusedTransform<B>::elements +
                                  (spectrum_is_shared<B> ? FusedTransform<B>::spectrum_elements : 0);
/// Windows that share one transform of their reference: with more, its share of the work is small anyway.
template <int B>
constexpr int most_windows = 32 / pairs_per_block<B>;
template <int B>
constexpr int shared_bytes = pairs_per_block<B>* elements_per_pair<B>* static_cast<int>(sizeof(Complex));

/// As many blocks as the shared memory of Hopper holds, if 64 registers do.
template <int B>
constexpr int blocks_per_multiprocessor = std::min(1024 / threads_per_block<B>,
                                                   227 * 1024 / (shared_bytes<B> + 1024 + 40 * 36));

/// The job as the transforms of one length see it.
struct FusedShape {
  FftAxis y, x;  ///< of the windows
  FftAxis reference_y, reference_x;
  int reference_rows, window_rows;  ///< packed rows that are not zero
  PackedRows output_rows;
};

int least_length(const NccJob& job) {
  return std::max(fft_axis_y(job).least_length(job.reference.height),
                  fft_axis_x(job).least_length(job.reference.width));
}

template <int B>
FusedShape make_shape(const NccJob& job) {
  using Transform = FusedTransform<B>;
  const FftAxis y = fft_axis_y(job);
  return {.y = y,
          .x = fft_axis_x(job),
          .reference_y = {.used = job.reference.height},
          .reference_x = {.used = job.reference.width},
          .reference_rows = Transform::packed_rows(job.reference.height - 1, Transform::n).low,
          .window_rows = Transform::packed_rows(y.used - 1, Transform::n).low,
          .output_rows = Transform::packed_rows(y.high, Transform::n + std::min(y.low, 0))};
}

/// A row of a matrix in the coordinates of the transforms: zero outside x0 <= x < x0 + width.
struct PaddedRow {
  const float* first;
  int x0;
  unsigned width;

  __device__ float operator[](int x) const {
    return static_cast<unsigned>(x - x0) < width ? __ldg(first + x) : 0.0f;
  }
};

struct PaddedMatrix {
  const char* first;
  std::ptrdiff_t row_bytes;
  int x0, x1, y0, y1;

  __device__ PaddedRow operator()(int y) const {
    const bool exists = y >= y0 && y < y1 && x0 < x1;
    return {reinterpret_cast<const float*>(first + y * row_bytes), x0, exists ? x1 - x0 : 0u};
  }
};
__device__ PaddedMatrix padded(const Matrix<float>& matrix, const FftAxis& y, const FftAxis& x) {
  return {reinterpret_cast<const char*>(matrix.row(y.first) + x.first),
          matrix.row_bytes,
          max(matrix.x0 - x.first, 0),
          min(matrix.x1 - x.first, x.used),
          max(matrix.y0 - y.first, 0),
          min(matrix.y1 - y.first, y.used)};
}

/// The surface of a pair.
template <int B>
struct FusedOutput {
  static constexpr int n = FusedTransform<B>::n;
  const FusedShape& shape;
  int nx;
  float* origin;  ///< of shift (0, 0), less the axes' `first`

  /// Stores the sums of two rows that were asked for.
  __device__ void operator()(int y, int j, const Complex (&sums)[B]) const {
    store_row(y, j, [&](int m) { return sums[m].re; });
    store_row(y + B, j, [&](int m) { return sums[m].im; });
  }

 private:
  template <typename Sums>
  __device__ void store_row(int y, int j, const Sums& sums) const {
    const int dy = shape.y.shift_at(y, n);
    if (dy < shape.y.low) return;
    float* const row = origin + dy * nx + j;
    unrolled<B>([&](auto m) {
      if (j + 16 * m <= shape.x.high) row[16 * m] = sums(m);
      if (j + 16 * m >= n + shape.x.low) row[16 * m - n] = -sums(m);  // wrapped around
    });
  }
};

/// What is transformed after one another: round 0 the reference, round k window k - 1.
struct FusedRound {
  PaddedMatrix matrix;
  std::int64_t origin;  ///< where the sum of shift (0, 0), less the axes' `first`, lies
  bool is_stored;
};
__device__ FusedRound make_round(const Frame& frame, const FusedShape& shape, std::int64_t first_pair, int k,
                                 bool is_stored) {
  if (k == 0)
    return {padded(load_matrix<float>(frame.reference, frame.reference_of(first_pair)), shape.reference_y,
                   shape.reference_x),
            0, false};
  const std::int64_t pair = first_pair + (is_stored ? k - 1 : 0);
  const int row = shape.y.shifts_before - shape.y.low, column = shape.x.shifts_before - shape.x.low;
  return {padded(load_matrix<float>(frame.search, frame.window_of(pair)), shape.y, shape.x),
          (pair * frame.ny + row) * frame.nx + column, is_stored};
}

/// Pairs side by side meet at barriers, unless each has a warp of its own.
template <int B>
constexpr bool pairs_are_independent = pairs_per_block<B> == 1 || FusedTransform<B>::threads == warp_size;
template <int B>
__device__ void wait_for_pair() {
  if constexpr (FusedTransform<B>::threads == warp_size)
    __syncwarp();
  else
    __syncthreads();
}

/// FusedTransform<B>::threads threads take one reference and a group of its windows.
template <int B>
__global__ void __launch_bounds__(threads_per_block<B>, blocks_per_multiprocessor<B>)
    fused_fft(const __grid_constant__ Frame frame, const __grid_constant__ WindowGroups groups,
              const __grid_constant__ FusedShape shape, Complex* spectra, float* out) {
  using Transform = FusedTransform<B>;
  extern __shared__ Complex planes[];
  __shared__ FusedRound rounds_of_place[pairs_per_block<B>][1 + most_windows<B>];
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
    const PairRange pairs = groups.pairs(frame, exists ? base + place : base);
    const auto count = exists ? static_cast<int>(pairs.end - pairs.begin) : 0;
    const int windows = pairs_are_independent<B> ? count : groups.size;
    // Where all matrices lie, at once: one wait instead of one per window.
    for (int k = thread; k <= windows; k += Transform::threads)
      rounds[k] = make_round(frame, shape, pairs.begin, k, k <= count);
    wait_for_pair<B>();
    for (int k = 0; k <= windows; ++k) {
      asm volatile(""
                   : "+r"(thread));  // indices are computed anew, not carried through all passes in registers
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
                                    FusedOutput<B>{shape, frame.nx, out + rounds[k].origin});
      wait_for_pair<B>();
    }
  }
}

/// Windows per group such that the last wave of blocks is full too. A reference costs 0.4 of a window.
int group_size(const Frame& frame, int most, std::int64_t places) {
  constexpr double cost_of_reference = 0.4;
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int size = 1; size <= std::min<std::int64_t>(most, frame.windows_per_reference); ++size) {
    const std::int64_t waves = (WindowGroups(frame, size).count() + places - 1) / places;
    const double cost = static_cast<double>(waves) * (size + cost_of_reference);
    if (cost < least) least = cost, best = size;
  }
  return best;
}

int multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
        "Reading the number of multiprocessors");
  return count;
}

template <int B>
void launch(const NccJob& job, float* out, Workspace& workspace, StreamHandle stream) {
  constexpr int per_block = pairs_per_block<B>, threads = threads_per_block<B>;
  if (shared_bytes < B >> 40 * 1024)  // more than every block may have
    check(cudaFuncSetAttribute(fused_fft<B>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<B>),
          "Reserving shared memory for cuda-fft-fused");
  const Frame frame = make_frame(job);
  const std::int64_t resident = std::int64_t{multiprocessors()} * blocks_per_multiprocessor<B>;
  const WindowGroups groups(frame, group_size(frame, most_windows<B>, per_block * resident));
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      grid_size(groups.count(), per_block), spectrum_is_shared<B> ? INT_MAX : resident));
  Complex* spectra = nullptr;
  if (!spectrum_is_shared<B>)
    spectra = static_cast<Complex*>(workspace.memory().reserve(
        blocks * per_block * FusedTransform<B>::spectrum_elements * sizeof(Complex)));
  fused_fft<B><<<blocks, threads, shared_bytes<B>, stream>>>(frame, groups, make_shape<B>(job), spectra, out);
}

}  // namespace

std::string refuses_fft_fused(const NccJob& job) {
  if (job.sums != Surfaces::Type::f32) return "cuda-fft-fused sums in f32 only: use cuda-fft.";
  if (least_length(job) > largest_length)
    return "cuda-fft-fused does transforms of at most 128x128: use cuda-fft.";
  return {};
}

void launch_fft_fused(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  auto* const sums = static_cast<float*>(out);
  const std::int64_t inside = fft_axis_y(job).shifts() * fft_axis_x(job).shifts();
  if (inside < job.shifts.count()) fill(out, 0, job.outputs() * sizeof(float), stream);
  if (inside == 0) return;
  const int length = least_length(job);
  if (length <= 32) return launch<2>(job, sums, workspace, stream);
  if (length <= 48) return launch<3>(job, sums, workspace, stream);
  if (length <= 64) return launch<4>(job, sums, workspace, stream);
  if (length <= 96) return launch<6>(job, sums, workspace, stream);
  launch<8>(job, sums, workspace, stream);
}

}  // namespace dic::kernels

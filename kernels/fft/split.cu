#include <algorithm>
#include <numeric>

#include "fft/batches.hpp"
#include "fft/transform_job.cuh"
#include "ncc/variants.hpp"

// cuda-fft-split: the transforms of cuda-fft-fused for sizes that do not fit into shared memory, in three
// kernels: rows of pixels, columns with the product, rows to sums. Spectra pass between the kernels in
// batches that fit into the L2 cache.

namespace dic::kernels {
namespace {

constexpr int largest_length = 512;
constexpr std::size_t most_cached_bytes = std::size_t{32} << 20;

/// Twiddle factors in global memory, ordered so that neighbouring threads read neighbours.
template <int B>
struct SplitTwiddles {
  Complex rows[16][B];  ///< Twiddles::rows, transposed
  Complex columns[16][B];
};
template <int B>
constexpr SplitTwiddles<B> make_split_twiddles() {
  constexpr Twiddles<B> from = make_twiddles<B>();
  SplitTwiddles<B> to{};
  for (int j = 0; j < 16; ++j)
    for (int k = 0; k < B; ++k) {
      to.rows[j][k] = from.rows[k][j];
      to.columns[j][k] = from.columns[j][k];
    }
  return to;
}
template <int B>
__device__ constexpr SplitTwiddles<B> twiddles = make_split_twiddles<B>();

/// N x N transforms; a block processes some rows or some columns.
template <int B>
struct SplitTransform : PackedTransform<B> {
  using PackedTransform<B>::half, PackedTransform<B>::n;
  static constexpr int lines = B <= 16 ? 16 : 8;  ///< packed rows, or columns, per block
  static constexpr int threads = 16 * lines;
  static constexpr int elements = half * n;  ///< elements of a spectrum
  static constexpr int column_groups = half / lines;

  /// Place in shared memory of number k of run j of a row: no bank conflicts along j or along k.
  static constexpr int gap_period = std::lcm(B, 16);
  static constexpr int row_pitch = (n + n / gap_period) | 1;
  __device__ static int row_slot(int row, int j) { return row * row_pitch + B * j + B * j / gap_period; }
  /// Place in shared memory of output k of the first pass over columns, for t = 0; other t are `lines` apart.
  static constexpr int column_pitch = B * lines + 8;
  __device__ static int column_slot(int c, int k) { return k * column_pitch + c; }

  /// Place in global memory of output k of column c for t = 0; other t are n apart.
  __device__ static int spectrum_place(int c, int k) {
    return B * (k / 2) * n + (k % 2 == 0 ? c : n - 1 - c);
  }
};
template <int B>
constexpr int row_bytes =
    SplitTransform<B>::lines* SplitTransform<B>::row_pitch* static_cast<int>(sizeof(Complex));
template <int B>
constexpr int column_bytes = 16 * SplitTransform<B>::column_pitch* static_cast<int>(sizeof(Complex));

/// Calls body(task) for the tasks of this thread.
template <typename Body>
__device__ void for_tasks_of_block(int tasks, Body&& body) {
  for (int task = threadIdx.x; task < tasks; task += blockDim.x) body(task);
}

/// The spectra of a batch: references first, then windows.
struct Spectra {
  Complex* references;
  Complex* windows;
  Complex* products;  ///< may be the memory of the windows
};

/// Transforms some packed rows of one matrix per block.
template <int B>
__global__ void __launch_bounds__(SplitTransform<B>::threads)
    rows_from_pixels(const __grid_constant__ JobView view, const __grid_constant__ TransformShape shape,
                     const __grid_constant__ FftBatch batch, int groups,
                     const __grid_constant__ Spectra spectra) {
  using Transform = SplitTransform<B>;
  extern __shared__ Complex z[];
  const auto place = static_cast<int>(blockIdx.x / groups);
  const auto first = static_cast<int>(blockIdx.x % groups) * Transform::lines;
  const bool is_reference = place < batch.references;
  const auto k = is_reference ? place : place - static_cast<int>(batch.references);
  const int used = is_reference ? shape.reference_rows : shape.window_rows;
  const int rows = min(used - first, Transform::lines);
  if (rows <= 0) return;
  const PaddedMatrix matrix =
      is_reference ? padded(load_patch<float>(view.reference, batch.first_reference + k), shape.reference_y,
                            shape.reference_x)
                   : padded(load_patch<float>(view.search, batch.first_window + k), shape.y, shape.x);
  for_tasks_of_block(rows * 16, [&](int task) {
    const int row = task / 16, j = task % 16;
    Complex v[B];
    Transform::start_row(matrix, first + row, j, v);
    Complex* const run = z + Transform::row_slot(row, j);
    unrolled<B>([&](auto i) { run[i] = v[i]; });
  });
  __syncthreads();
  Complex* const out = (is_reference ? spectra.references : spectra.windows) +
                       (std::int64_t{k} * Transform::half + first) * Transform::n;
  for_tasks_of_block(rows * B, [&](int task) {
    const int row = task / B, i = task % B;
    Complex v[16];
    unrolled<16>([&](auto j) { v[j] = twiddles<B>.rows[j][i] * z[Transform::row_slot(row, j) + i]; });
    dft<16, Direction::forward>(v);
    unrolled<16>([&](auto j) { out[row * Transform::n + B * j + i] = v[j]; });
  });
}

/// First pass over the columns of `from` that begin with c0; packed rows from `used` on are zero.
template <int B>
__device__ void start_columns(const Complex* from, int c0, int used, Complex* z) {
  using Transform = SplitTransform<B>;
  for_tasks_of_block(Transform::lines * B, [&](int task) {
    const int c = task % Transform::lines, t = task / Transform::lines;
    const Complex* const row = from + t * Transform::n;
    Complex v[16];
    Transform::start_column(row + c0 + c, row + Transform::n - 1 - c0 - c, B * Transform::n, t, used, v);
    unrolled<16>([&](auto k) { z[Transform::column_slot(c, k) + t * Transform::lines] = v[k]; });
  });
  __syncthreads();
}

/// Calls body(c, k, v) with the runs of the columns, from z.
template <int B, typename Body>
__device__ void for_runs(Complex* z, Body&& body) {
  using Transform = SplitTransform<B>;
  for_tasks_of_block(Transform::lines * 16, [&](int task) {
    const int c = task % Transform::lines, k = task / Transform::lines;
    Complex* const run = z + Transform::column_slot(c, k);
    Complex v[B];
    unrolled<B>([&](auto t) { v[t] = run[t * Transform::lines]; });
    Transform::transform_run(twiddles<B>.columns[k], v);
    body(c, k, v, run);
  });
}

/// Replaces some columns of one reference by their spectrum, conjugate and scaled, per block.
template <int B>
__global__ void __launch_bounds__(SplitTransform<B>::threads)
    columns_of_references(const __grid_constant__ TransformShape shape, Complex* references) {
  using Transform = SplitTransform<B>;
  extern __shared__ Complex z[];
  const auto group = static_cast<int>(blockIdx.x % Transform::column_groups);
  Complex* const spectrum =
      references + std::int64_t{blockIdx.x / Transform::column_groups} * Transform::elements;
  const int c0 = group * Transform::lines;
  start_columns<B>(spectrum, c0, shape.reference_rows, z);
  for_runs<B>(z, [&](int c, int k, Complex(&v)[B], Complex*) {
    Complex* const to = spectrum + Transform::spectrum_place(c0 + c, k);
    unrolled<B>([&](auto t) { to[t * Transform::n] = Transform::scale * conj(v[t]); });
  });
}

/// Processes some columns of one pair per block: forward, product, inverse. Pair 0 is number `offset` of the
/// m pairs of its reference.
template <int B>
__global__ void __launch_bounds__(SplitTransform<B>::threads)
    columns_of_pairs(const __grid_constant__ TransformShape shape, unsigned offset, unsigned m,
                     bool windows_are_shared, const __grid_constant__ Spectra spectra) {
  using Transform = SplitTransform<B>;
  extern __shared__ Complex z[];
  const auto group = static_cast<int>(blockIdx.x % Transform::column_groups);
  const unsigned pair = blockIdx.x / Transform::column_groups;
  const auto place = [](Complex* first, unsigned k) { return first + std::int64_t{k} * Transform::elements; };
  const Complex* const reference = place(spectra.references, (offset + pair) / m);
  const int c0 = group * Transform::lines;
  start_columns<B>(place(spectra.windows, windows_are_shared ? (offset + pair) % m : pair), c0,
                   shape.window_rows, z);
  for_runs<B>(z, [&](int c, int k, Complex(&v)[B], Complex* run) {
    const Complex* const from = reference + Transform::spectrum_place(c0 + c, k);
    unrolled<B>([&](auto t) { v[t] = v[t] * from[t * Transform::n]; });
    Transform::transform_run_back(twiddles<B>.columns[k], v);
    unrolled<B>([&](auto t) { run[t * Transform::lines] = v[t]; });
  });
  __syncthreads();
  Complex* const product = place(spectra.products, pair);
  for_tasks_of_block(Transform::lines * B, [&](int task) {
    const int c = task % Transform::lines, t = task / Transform::lines;
    Complex v[16];
    unrolled<16>([&](auto k) { v[k] = z[Transform::column_slot(c, k) + t * Transform::lines]; });
    Complex* const row = product + t * Transform::n;
    Transform::finish_column(v, B * Transform::n, row + c0 + c, row + Transform::n - 1 - c0 - c);
  });
}

/// Transforms some packed rows of one product to sums per block.
template <int B>
__global__ void __launch_bounds__(SplitTransform<B>::threads)
    rows_to_sums(const __grid_constant__ JobView view, const __grid_constant__ TransformShape shape,
                 int groups, const Complex* products, float* out) {
  using Transform = SplitTransform<B>;
  extern __shared__ Complex z[];
  const std::int64_t pair = blockIdx.x / groups;
  const auto first = static_cast<int>(blockIdx.x % groups) * Transform::lines;
  const PackedRows all = shape.output_rows;
  const int rows = min(all.count() - first, Transform::lines);
  const Complex* const product = products + pair * Transform::elements;
  for_tasks_of_block(rows * B, [&](int task) {
    const int row = task / B, i = task % B;
    const Complex* const from = product + all[first + row] * Transform::n + i;
    Complex v[16];
    unrolled<16>([&](auto j) { v[j] = from[B * j]; });
    dft<16, Direction::inverse>(v);
    unrolled<16>([&](auto j) { z[Transform::row_slot(row, j) + i] = conj(twiddles<B>.rows[j][i]) * v[j]; });
  });
  __syncthreads();
  const TransformOutput<B> output{shape, view.nx, out + surface_origin(view, shape, pair)};
  for_tasks_of_block(rows * 16, [&](int task) {
    const int row = task / 16, j = task % 16;
    const Complex* const run = z + Transform::row_slot(row, j);
    Complex v[B];
    unrolled<B>([&](auto k) { v[k] = run[k]; });
    Transform::finish_row(v);
    output(Transform::first_row(all[first + row]), j, v);
  });
}

template <int B>
void launch(const NccJob& job, float* out, Workspace& workspace, StreamHandle stream) {
  using Transform = SplitTransform<B>;
  constexpr auto bytes = Transform::elements * sizeof(Complex);
  const JobView view = make_job_view(job);
  const TransformShape shape = make_shape<B>(job);
  const std::int64_t m = view.windows_per_reference;
  const bool is_shared = job.pairing == Pairing::n_to_m;
  const std::size_t most_bytes =
      is_shared ? workspace.most_bytes() : std::min(workspace.most_bytes(), most_cached_bytes);
  const FftBatches batches(job.first_pair, job.pairs, m, is_shared,
                           static_cast<std::int64_t>(most_bytes / bytes));
  auto* const references = static_cast<Complex*>(workspace.memory().reserve(batches.slots() * bytes));
  Complex* const windows = references + batches.references() * Transform::elements;
  const Spectra spectra{references, windows,
                        batches.has_products() ? windows + batches.windows() * Transform::elements : windows};
  const auto groups = [](int rows) { return (rows + Transform::lines - 1) / Transform::lines; };
  const int input_groups = groups(std::max(shape.reference_rows, shape.window_rows));
  const int output_groups = groups(shape.output_rows.count());
  std::int64_t reference_in_place = -1;
  batches.for_each([&](FftBatch batch) {
    if (batch.first_reference == reference_in_place)
      batch.references = 0;  // the batch has further windows of the last reference
    else if (batches.references() == 1)
      reference_in_place = batch.first_reference;
    const auto blocks = [](std::int64_t count, int per_item) {
      return static_cast<unsigned>(count * per_item);
    };
    rows_from_pixels<B><<<blocks(batch.references + batch.windows, input_groups), Transform::threads,
                          row_bytes<B>, stream>>>(view, shape, batch, input_groups, spectra);
    if (batch.references > 0)
      columns_of_references<B><<<blocks(batch.references, Transform::column_groups), Transform::threads,
                                 column_bytes<B>, stream>>>(shape, references);
    columns_of_pairs<B>
        <<<blocks(batch.pairs, Transform::column_groups), Transform::threads, column_bytes<B>, stream>>>(
            shape, static_cast<unsigned>(batch.first_pair - batch.first_reference * m),
            static_cast<unsigned>(m), batches.has_products(), spectra);
    rows_to_sums<B><<<blocks(batch.pairs, output_groups), Transform::threads, row_bytes<B>, stream>>>(
        view, shape, output_groups, spectra.products,
        out + (batch.first_pair - job.first_pair) * job.shifts.count());
  });
}

}  // namespace

std::string FftSplit::unsupported_reason(const NccJob& job) {
  if (job.sums != SurfaceType::f32) return "cuda-fft-split sums in f32 only: use cuda-fft.";
  if (least_length(job) > largest_length)
    return "cuda-fft-split does transforms of at most 512x512: use cuda-fft.";
  return {};
}

void FftSplit::launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  auto* const sums = static_cast<float*>(out);
  if (!clear_empty_shifts(job, sums, stream)) return;
  const int length = least_length(job);
  if (length <= 192) return launch<12>(job, sums, workspace, stream);
  if (length <= 256) return launch<16>(job, sums, workspace, stream);
  if (length <= 384) return launch<24>(job, sums, workspace, stream);
  launch<32>(job, sums, workspace, stream);
}

}  // namespace dic::kernels

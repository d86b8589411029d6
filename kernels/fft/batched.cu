#include <algorithm>
#include <cmath>
#include <limits>

#include "fft/axis.hpp"
#include "fft/batches.hpp"
#include "fft/cufft.hpp"
#include "ncc/job_view.cuh"
#include "ncc/variants.hpp"

// cuda-fft: pads, transforms, multiplies, transforms back and crops; the transforms are cuFFT's.

namespace dic::kernels {
namespace {

constexpr int threads = 256;

/// Geometry and lengths of the transforms of a job, and the size of a real matrix that holds one spectrum.
struct FftLayout {
  FftAxis y, x;  ///< axes of the windows
  FftAxis reference_y, reference_x;
  int ny, nx;
  int row;  ///< real elements from row to row, in place: 2 (nx / 2 + 1)

  DIC_HOST_DEVICE std::int64_t elements() const { return std::int64_t{ny} * row; }
};

FftLayout make_layout(const NccJob& job) {
  const FftAxis y = fft_axis_y(job), x = fft_axis_x(job);
  const int ny = fft_length(y.least_length(job.reference.height));
  const int nx = fft_length(x.least_length(job.reference.width));
  return {.y = y,
          .x = x,
          .reference_y = {.used = job.reference.height},
          .reference_x = {.used = job.reference.width},
          .ny = ny,
          .nx = nx,
          .row = 2 * (nx / 2 + 1)};
}

/// Two neighbours of a row of real numbers, or one number of a spectrum, which a thread loads and stores
/// together.
template <typename Real>
struct alignas(2 * sizeof(Real)) Pair {
  Real re, im;
};

/// Parts of `size` elements of one place, one part per block. A batch has fewer than 2^32 parts: more would
/// not fit into memory.
struct Parts {
  static constexpr int size = 4 * threads;
  int elements;

  DIC_HOST_DEVICE int count() const { return (elements + size - 1) / size; }
  __device__ unsigned place(std::int64_t task) const { return static_cast<unsigned>(task) / count(); }
  __device__ int part(std::int64_t task) const {
    return static_cast<int>(task - place(task) * std::int64_t{count()});
  }
  /// Calls body(i) for the elements of a part that this thread processes.
  template <typename Body>
  __device__ void for_each(int part, Body&& body) const {
    for (int i = part * size + threadIdx.x; i < min((part + 1) * size, elements); i += threads) body(i);
  }
};

/// Pads the references, then the windows, each to its place. Places beyond the batch are set to zero, so that
/// the last batch needs no plan for another number of transforms.
template <typename T, typename Real>
__global__ void __launch_bounds__(threads)
    pad(const __grid_constant__ JobView view, const __grid_constant__ FftLayout layout,
        const __grid_constant__ FftBatch batch, std::int64_t reference_places, std::int64_t places,
        Pair<Real>* out) {
  const Parts parts{static_cast<int>(layout.elements() / 2)};
  for_each_task(places * parts.count(), 1, 0, [&](std::int64_t task) {
    const std::int64_t place = parts.place(task);
    const bool is_reference = place < reference_places;
    const FftAxis& y_axis = is_reference ? layout.reference_y : layout.y;
    const FftAxis& x_axis = is_reference ? layout.reference_x : layout.x;
    const std::int64_t k = is_reference ? place : place - reference_places;
    const bool exists = k < (is_reference ? batch.references : batch.windows);
    const std::int64_t first = is_reference ? batch.first_reference : batch.first_window;
    const auto matrix =
        load_patch<T>(is_reference ? view.reference : view.search, exists ? first + k : first);
    const int y1 = exists ? min(matrix.y1, y_axis.first + y_axis.used) : 0;
    const int x1 = min(matrix.x1, x_axis.first + x_axis.used);
    parts.for_each(parts.part(task), [&](int i) {
      const int row = i / (layout.row / 2);
      const int y = y_axis.first + row, x = x_axis.first + 2 * (i - row * (layout.row / 2));
      const bool row_exists = y >= matrix.y0 && y < y1;
      const T* const from = matrix.row(y) + x;
      out[place * parts.elements + i] = {
          row_exists && x >= matrix.x0 && x < x1 ? static_cast<Real>(from[0]) : Real{0},
          row_exists && x + 1 >= matrix.x0 && x + 1 < x1 ? static_cast<Real>(from[1]) : Real{0}};
    });
  });
}

/// The pairs of a batch: the first one is number `offset` of the m pairs of its reference.
struct BatchPairs {
  std::int64_t count, places;  ///< pairs; places for products, some of which may have no pair
  unsigned offset, m;
  bool windows_are_shared;
};

/// Computes products[p] = scale * conj(reference) * window, element by element, and zeros for places beyond
/// the batch.
template <typename Real>
__global__ void __launch_bounds__(threads)
    multiply(const __grid_constant__ FftLayout layout, const __grid_constant__ BatchPairs batch, Real scale,
             const Pair<Real>* references, const Pair<Real>* windows, Pair<Real>* products) {
  const Parts parts{static_cast<int>(layout.elements() / 2)};
  const auto [pairs, places, offset, m, windows_are_shared] = batch;
  for_each_task(places * parts.count(), 1, 0, [&](std::int64_t task) {
    const unsigned place = parts.place(task);
    const std::int64_t elements = parts.elements;
    const bool exists = place < pairs;
    const Pair<Real>* const reference = references + (exists ? (offset + place) / m : 0) * elements;
    const Pair<Real>* const window = windows + (windows_are_shared ? (offset + place) % m : place) * elements;
    Pair<Real>* const product = products + place * elements;
    parts.for_each(parts.part(task), [&](int i) {
      const Pair<Real> a = reference[i], b = exists ? window[i] : Pair<Real>{};
      product[i] = {scale * (a.re * b.re + a.im * b.im), scale * (a.re * b.im - a.im * b.re)};
    });
  });
}

/// Integer nearest to a transform's result; modulo 2^32 for u32.
template <typename Sum, typename Real>
__device__ Sum rounded(Real value) {
  if constexpr (std::is_integral_v<Sum>)
    return static_cast<Sum>(__double2ll_rn(value));
  else
    return value;
}

/// Copies the sums of the shifts to out[pair, dy, dx]; writes zero for shifts without overlap.
template <typename Real, typename Sum>
__global__ void __launch_bounds__(threads) crop(const __grid_constant__ FftLayout layout, std::int64_t pairs,
                                                int ny, int nx, const Real* products, Sum* out) {
  const Parts parts{ny * nx};
  const int first_y = layout.y.low - layout.y.shifts_before, first_x = layout.x.low - layout.x.shifts_before;
  for_each_task(pairs * parts.count(), 1, 0, [&](std::int64_t task) {
    const std::int64_t pair = parts.place(task);
    const Real* const product = products + pair * layout.elements();
    parts.for_each(parts.part(task), [&](int i) {
      const int dy = first_y + i / nx, dx = first_x + i % nx;
      const int y = dy < 0 ? dy + layout.ny : dy, x = dx < 0 ? dx + layout.nx : dx;
      const bool overlaps = layout.y.holds(dy) && layout.x.holds(dx);
      out[pair * parts.elements + i] = overlaps ? rounded<Sum>(product[y * layout.row + x]) : Sum{0};
    });
  });
}

template <typename T, typename Sum>
void launch(const NccJob& job, Sum* out, Workspace& workspace, StreamHandle stream) {
  using Real = std::conditional_t<std::is_same_v<Sum, float>, float, double>;
  constexpr bool is_f32 = std::is_same_v<Real, float>;
  const JobView view = make_job_view(job);
  const FftLayout layout = make_layout(job);
  const std::int64_t pairs_of_place = layout.elements() / 2, m = view.windows_per_reference;
  const auto bytes = pairs_of_place * static_cast<std::int64_t>(sizeof(Pair<Real>));
  const FftBatches batches(job.first_pair, job.pairs, m, job.pairing == Pairing::n_to_m,
                           static_cast<std::int64_t>(workspace.most_bytes()) / bytes);
  auto* const references = static_cast<Pair<Real>*>(workspace.memory().reserve(batches.slots() * bytes));
  auto* const windows = references + batches.references() * pairs_of_place;
  auto* const products = batches.has_products() ? windows + batches.windows() * pairs_of_place : windows;
  const std::int64_t places = batches.references() + batches.windows();
  const std::int64_t parts = Parts{static_cast<int>(pairs_of_place)}.count();
  const std::int64_t output_parts = Parts{static_cast<int>(job.shifts.count())}.count();
  const auto transform = [&](FftKind kind, std::int64_t count, Pair<Real>* data) {
    workspace.fft_plans().execute({kind, layout.ny, layout.nx, static_cast<int>(count)}, data, stream);
  };
  batches.for_each([&](const FftBatch& batch) {
    pad<T, Real><<<grid_size(places * parts, 1), threads, 0, stream>>>(
        view, layout, batch, batches.references(), places, references);
    transform(is_f32 ? FftKind::f32_forward : FftKind::f64_forward, places, references);
    multiply<Real><<<grid_size(batches.pairs() * parts, 1), threads, 0, stream>>>(
        layout,
        {.count = batch.pairs,
         .places = batches.pairs(),
         .offset = static_cast<unsigned>(batch.first_pair - batch.first_reference * m),
         .m = static_cast<unsigned>(m),
         .windows_are_shared = batches.has_products()},
        Real{1} / (static_cast<Real>(layout.ny) * static_cast<Real>(layout.nx)), references, windows,
        products);
    transform(is_f32 ? FftKind::f32_inverse : FftKind::f64_inverse, batches.pairs(), products);
    crop<Real, Sum><<<grid_size(batch.pairs * output_parts, 1), threads, 0, stream>>>(
        layout, batch.pairs, view.ny, view.nx, reinterpret_cast<const Real*>(products),
        out + (batch.first_pair - job.first_pair) * job.shifts.count());
  });
}

/// True if rounding to integers undoes the worst errors of f64 transforms: every element at the end of its
/// range, epsilon * 2 log2(ny nx) * norm * norm below one half.
bool rounds_exactly(const NccJob& job, const FftLayout& layout) {
  const double range = job.type == ScalarType::u8 ? 255 : 65535;
  const double elements = std::sqrt(static_cast<double>(job.reference.height) * job.reference.width *
                                    layout.y.used * layout.x.used);
  const double log = std::log2(static_cast<double>(layout.ny) * layout.nx);
  return std::numeric_limits<double>::epsilon() * 2 * log * range * range * elements < 0.5;
}

}  // namespace

std::string Fft::unsupported_reason(const NccJob& job) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 30;  // offsets in a matrix have 32 bits
  const std::int64_t extent_y = job.reference.height + std::int64_t{job.search.height};
  const std::int64_t extent_x = job.reference.width + std::int64_t{job.search.width};
  if (2 * extent_y * extent_x > most_elements) return "cuda-fft does matrices of up to 2^28 elements or so.";
  if (job.type != ScalarType::f32 && job.type != ScalarType::f64 && !rounds_exactly(job, make_layout(job)))
    return "cuda-fft cannot promise exact sums of integers at this size: use cuda-basic.";
  return {};
}

void Fft::launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    if constexpr (!std::is_same_v<T, std::int32_t>) launch<T>(job, static_cast<Sum*>(out), workspace, stream);
  });
}

}  // namespace dic::kernels

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "ncc/scoring/find_peak.cuh"
#include "ncc/variants.hpp"

// Correlation of references of which only some elements count. The references are packed with zeros in place
// of the other elements, so that any variant can sum their products. The sums over the window under the
// elements that count come from running sums along the window's rows: a run of such elements in a row of the
// reference is the difference of two running sums. Where the elements that count are a rectangle, as at
// straight edges, four sums over rows and columns are enough.
namespace dic::kernels {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / warp_size;

// ---- References without the elements that do not count ----

/// Elements x0 .. x1 - 1 of the rows y0 .. y1 - 1.
struct Rectangle {
  int x0, x1, y0, y1;
  __device__ int count() const { return (x1 - x0) * (y1 - y0); }
};

/// What scores need of a reference.
template <typename T>
struct MaskedReference {
  Moments<T> moments;
  std::int64_t count;   ///< elements that count
  Rectangle existing;   ///< elements
  Rectangle rectangle;  ///< the elements that count, where they are a rectangle; else x1 is 0
};

/// Packed references. Rows of `pixels` are whole chunks of 16 bytes; those of `bits` whole words, with a bit
/// for every element that counts.
struct MaskedReferences {
  void* pixels;
  std::uint32_t* bits;
  void* records;  ///< MaskedReference each
  DeviceImage* image;
  PatchPosition* positions;
  int row_elements, row_words;
};

/// A warp packs a reference.
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
    Rectangle around{in.width, 0, in.height, 0};  // around the elements that this lane counts
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

// ---- Scores ----

/// The type of sums over any elements of the window: exact for integers; 32 bits where they are enough for
/// sums of products.
template <typename T, typename Sum>
using RunningSum = std::conditional_t<!is_exact<T>, double,
                                      std::conditional_t<sizeof(Sum) == 4, std::uint32_t, std::int64_t>>;
template <typename Value>
struct alignas(2 * sizeof(Value)) Running {
  Value sum, squares;
};
/// Running sums of two neighbours, which are stored together.
template <typename Value>
struct alignas(16) RunningPair {
  Running<Value> left, right;
};

/// Shifts of a thread where a block has more shifts than threads.
template <typename Value>
constexpr int most_shifts = sizeof(Value) == 4 ? 8 : 4;

/// The tiling of a job: a block computes a tile of shifts, band by band of the reference's rows. Where it has
/// few shifts, the rows of a band are divided among its warps.
struct MaskedTiling {
  int columns, rows;  ///< shifts of a tile
  int across, down;   ///< tiles
  int parts;          ///< of a block, among which rows are divided; threads / parts are whole warps
  int band;           ///< rows
  /// Running sums of a row of the window. There are band + rows - 1 rows. The first place of a row is not
  /// used, so that pairs from the third place on are aligned; neighbouring rows begin in different banks.
  int pitch;

  MaskedTiling(const NccJob& job, int value_bytes, int shifts_of_thread) {
    constexpr int most_bytes = 36 * 1024, most_columns = 64;
    across = divide_up(job.shifts.nx(), most_columns);
    columns = divide_up(job.shifts.nx(), across);
    pitch = (job.reference.width + columns + 1) / 4 * 4 + 6;
    const int fit = most_bytes / (2 * value_bytes * pitch);
    down = divide_up(job.shifts.ny(),
                     std::max(std::min(threads * shifts_of_thread / columns, (fit + 1) / 2), 1));
    rows = divide_up(job.shifts.ny(), down);
    band = std::min(job.reference.height, fit - rows + 1);
    parts = std::max(threads / std::max(std::bit_ceil(static_cast<unsigned>(columns * rows)), 32u), 1u);
  }
  bool has_all_shifts() const { return across * down == 1; }
  bool has_few_shifts() const { return columns * rows <= threads; }

 private:
  static int divide_up(int whole, int parts) { return (whole + parts - 1) / parts; }
};

/// Shared memory of a block: running sums, then the bits of the band.
template <typename Value>
struct BandMemory {
  static int bytes(const MaskedTiling& tiling, int row_words) {
    return static_cast<int>(sizeof(Running<Value>)) * sums(tiling) +
           static_cast<int>(sizeof(std::uint32_t)) * tiling.band * row_words;
  }

  __device__ BandMemory(const MaskedTiling& tiling, void* memory)
      : running(static_cast<Running<Value>*>(memory)),
        bits(reinterpret_cast<std::uint32_t*>(running + sums(tiling))) {}

  Running<Value>* running;
  std::uint32_t* bits;

 private:
  __host__ __device__ static int sums(const MaskedTiling& tiling) {
    return tiling.pitch * (tiling.band + tiling.rows - 1);
  }
};

/// The running sums of some rows of a window, from (y, x) on, less `origin` (of floats: an element of the
/// window, so that what is constant sums to exact zeros).
template <typename T, typename Value>
__device__ void stage_rows(const PatchView<T>& window, T origin, int y, int x, int rows, int columns,
                           int pitch, Running<Value>* shared) {
  constexpr int chunk = 2 * warp_size;  ///< columns, two of a lane
  const int lane = threadIdx.x % warp_size, first_row = warp_index();
  for (int first = 0; first < columns; first += chunk) {
    const int left = x + first + 2 * lane;
    const bool left_exists = left >= window.x0 && left < window.x1;
    const bool right_exists = left + 1 >= window.x0 && left + 1 < window.x1;
    Running<Value>* line = shared + first_row * pitch + 1 + first;
    const T* pixels = window.row(y + first_row) + left;
    for (int row = first_row; row < rows; row += warps, line += warps * pitch) {
      const bool row_exists = y + row >= window.y0 && y + row < window.y1;
      const auto value_at = [&](bool exists, int i) {
        return exists && row_exists ? static_cast<Value>(pixels[i]) - static_cast<Value>(origin) : Value{0};
      };
      const Value a = value_at(left_exists, 0), b = value_at(right_exists, 1);
      Running<Value> sums{a + b, a * a + b * b};
#pragma unroll
      for (int offset = 1; offset < warp_size; offset *= 2) {
        const Value sum = __shfl_up_sync(all_lanes, sums.sum, offset);
        const Value squares = __shfl_up_sync(all_lanes, sums.squares, offset);
        if (lane >= offset) sums.sum += sum, sums.squares += squares;
      }
      const Running<Value> before = first > 0 ? line[0] : Running<Value>{0, 0};  // by this warp's last lane
      sums.sum += before.sum, sums.squares += before.squares;
      const Running<Value> left_sums{sums.sum - b, sums.squares - b * b};
      if (first == 0 && lane == 0) line[0] = before;
      if (first + 2 * lane < columns)
        *reinterpret_cast<RunningPair<Value>*>(line + 2 * lane + 1) = {left_sums, sums};
      pixels = reinterpret_cast<const T*>(reinterpret_cast<const char*>(pixels) + warps * window.row_bytes);
    }
    __syncwarp();
  }
}

/// Adds to the running sums of each row those of the rows above.
template <typename Value>
__device__ void sum_down(int rows, int columns, int pitch, Running<Value>* shared) {
  constexpr int at_once = 4;  ///< rows that are loaded before any is stored
  for (int column = threadIdx.x; column < columns; column += threads) {
    Running<Value>* line = shared + 2 + column;
    Running<Value> total{0, 0};
    for (int row = 0; row < rows; row += at_once, line += at_once * pitch) {
      Running<Value> next[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (row + k < rows) next[k] = line[k * pitch];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (row + k >= rows) break;
        total = {total.sum + next[k].sum, total.squares + next[k].squares};
        line[k * pitch] = total;
      }
    }
  }
}

/// Sums over the window under the elements that count, for the shifts of a thread.
template <typename Value, int kShifts>
class SumsUnderMask {
 public:
  static constexpr int count = kShifts;
  /// Sums at one shift.
  struct Sums {
    Value sum = 0, squares = 0;
    Value summed = 0;  ///< of floats: all squares that were added or subtracted
  };

  /// The thread's shifts are number `first`, first + step, ... of the tile's.
  __device__ SumsUnderMask(const MaskedTiling& tiling, int first, int step, int shifts, int shifts_x)
      : used_((shifts + step - 1) / step) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const int shift = min(first + k * step, shifts - 1);
      at_[k] = shift / shifts_x * tiling.pitch + shift % shifts_x;
    }
  }

  /// Adds every `step`-th row of a band from `first` on.
  __device__ void add_rows(const BandMemory<Value>& memory, int row_words, int pitch, int first, int step,
                           int rows) {
    for (int row = first; row < rows; row += step) {
      std::uint32_t before = 0, word = memory.bits[row * row_words];
      for (int w = 0; w < row_words; ++w) {
        const std::uint32_t after = w + 1 < row_words ? memory.bits[row * row_words + w + 1] : 0;
        const Running<Value>* const line = memory.running + row * pitch + w * warp_size + 1;
        // A run begins where the element before does not count, and ends where the next one does not.
        for_each_bit(word & ~(word << 1 | before >> 31), [&](int bit) { add<-1>(line + bit); });
        for_each_bit(word & ~(word >> 1 | after << 31), [&](int bit) { add<1>(line + bit + 1); });
        before = word, word = after;
      }
    }
  }
  /// Adds all elements of a rectangle, from sums over rows and columns.
  __device__ void add_rectangle(const BandMemory<Value>& memory, int pitch, const Rectangle& rectangle) {
    const int above = (rectangle.y0 - 1) * pitch, last = (rectangle.y1 - 1) * pitch;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      if (k >= used_) break;
      const auto add_row = [&](int row, Value sign) {
        const Running<Value>* const line = memory.running + at_[k] + row + 1;
        sums_[k].sum += sign * (line[rectangle.x1].sum - line[rectangle.x0].sum);
        sums_[k].squares += sign * (line[rectangle.x1].squares - line[rectangle.x0].squares);
      };
      add_row(last, Value(1));
      if (at_[k] + above >= 0) add_row(above, Value(-1));
    }
  }
  /// Adds the other parts' sums at the thread's first shift, in part 0.
  __device__ void add_parts(int parts, Sums* sums_by_thread) {
    if (parts == 1) return;
    sums_by_thread[threadIdx.x] = sums_[0];
    __syncthreads();
    for (int i = threadIdx.x + threads / parts; i < threads; i += threads / parts) {
      sums_[0].sum += sums_by_thread[i].sum;
      sums_[0].squares += sums_by_thread[i].squares;
      sums_[0].summed += sums_by_thread[i].summed;
    }
    __syncthreads();  // the memory is used again
  }
  template <typename T>
  __device__ Moments<T> moments(int k, std::int64_t n, T origin) const {
    return moments_of<T>(n, sums_[k].sum, sums_[k].squares, sums_[k].summed, origin);
  }

 private:
  template <typename Body>
  __device__ static void for_each_bit(std::uint32_t bits, Body&& body) {
    for (; bits != 0; bits &= bits - 1) body(__ffs(static_cast<int>(bits)) - 1);
  }
  template <int kSign>
  __device__ void add(const Running<Value>* running) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      if (k >= used_) break;
      const Running<Value> here = running[at_[k]];
      sums_[k].sum += Value(kSign) * here.sum;
      sums_[k].squares += Value(kSign) * here.squares;
      if constexpr (std::is_floating_point_v<Value>) sums_[k].summed += here.squares;
    }
  }

  int used_;       ///< the most shifts of a thread
  int at_[count];  ///< offsets of the shifts among the running sums of a band
  Sums sums_[count];
};

/// What a launch writes: the scores of all shifts, or the peaks of all pairs.
struct MaskedOutput {
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;  ///< where a tile has all shifts
};

/// Blocks for which a multiprocessor must have registers: as many as fit without spills.
template <typename Value>
__host__ __device__ constexpr int least_blocks(int shifts) {
  if (sizeof(Value) == 4 && shifts == 1) return 8;
  return std::is_floating_point_v<Value> ? 4 : 5;
}

/// A block scores a tile of one pair's shifts. `view` is that of the packed references.
template <typename T, typename Sum, int kShifts>
__global__ void __launch_bounds__(threads, least_blocks<RunningSum<T, Sum>>(kShifts))
    masked_scores(const __grid_constant__ JobView view, const __grid_constant__ MaskedReferences references,
                  const __grid_constant__ MaskedTiling tiling, Criterion criterion, const Sum* products,
                  const __grid_constant__ MaskedOutput out) {
  using Value = RunningSum<T, Sum>;
  using Under = SumsUnderMask<Value, kShifts>;
  extern __shared__ uint4 shared[];
  __shared__ union {
    float scores[threads * Under::count];
    uint4 sums_by_thread[threads * sizeof(typename Under::Sums) / sizeof(uint4)];
  } result;
  const BandMemory<Value> memory(tiling, shared);
  const int h = view.reference.height, w = view.reference.width;
  const int tiles = tiling.across * tiling.down, threads_of_part = threads / tiling.parts;
  const int part = static_cast<int>(threadIdx.x) / threads_of_part;
  const int first_shift = static_cast<int>(threadIdx.x) % threads_of_part;
  for_each_task(view.pairs * tiles, 1, 0, [&](std::int64_t task) {
    const std::int64_t pair = tiles == 1 ? task : task / tiles;
    const auto tile = static_cast<int>(task - pair * tiles);
    const int x = tile % tiling.across * tiling.columns, y = tile / tiling.across * tiling.rows;
    const int shifts_x = min(tiling.columns, view.nx - x), shifts_y = min(tiling.rows, view.ny - y);
    const int shifts = shifts_x * shifts_y, dx = view.dx_min + x, dy = view.dy_min + y;
    const auto window = load_patch<T>(view.search, view.window_of(pair));
    const bool exists = window.x0 < window.x1 && window.y0 < window.y1;
    const T origin = !is_exact<T> && exists ? window.row(window.y0)[window.x0] : T{0};
    const std::int64_t index = view.reference_of(pair);
    const auto* const record = static_cast<const MaskedReference<T>*>(references.records) + index;
    const std::uint32_t* bits = references.bits + index * h * references.row_words;

    Under under(tiling, first_shift, threads_of_part, shifts, shifts_x);
    for (int first = 0; first < h; first += tiling.band) {
      const int rows = min(tiling.band, h - first);
      stage_rows(window, origin, dy + first, dx, rows + shifts_y - 1, w + shifts_x - 1, tiling.pitch,
                 memory.running);
      for (int i = threadIdx.x; i < rows * references.row_words; i += threads)
        memory.bits[i] = bits[first * references.row_words + i];
      __syncthreads();
      if (is_exact<T> && rows == h && record->rectangle.x1 > 0) {  // sums of floats down a column would round
        sum_down(rows + shifts_y - 1, w + shifts_x - 1, tiling.pitch, memory.running);
        __syncthreads();
        if (part == 0) under.add_rectangle(memory, tiling.pitch, record->rectangle);
      } else {
        under.add_rows(memory, references.row_words, tiling.pitch, part, tiling.parts, rows);
      }
      __syncthreads();  // the running sums are overwritten for the next band or task
    }
    under.add_parts(tiling.parts, reinterpret_cast<typename Under::Sums*>(result.sums_by_thread));

    const MaskedReference<T> reference = *record;
#pragma unroll
    for (int k = 0; k < Under::count; ++k) {
      const int shift = first_shift + k * threads_of_part;
      if (part != 0 || shift >= shifts) break;
      const int column = shift % shifts_x, row = shift / shifts_x;
      const int sx = dx + column, sy = dy + row;
      const Rectangle& existing = reference.existing;
      const bool inside = sx + existing.x0 >= window.x0 && sx + existing.x1 <= window.x1 &&
                          sy + existing.y0 >= window.y0 && sy + existing.y1 <= window.y1;
      const std::int64_t place = (pair * view.ny + y + row) * view.nx + x + column;
      const float value = inside ? score<T>(criterion, reference.count, products[place], reference.moments,
                                            under.moments(k, reference.count, origin))
                                 : undefined;
      if (out.peaks)
        result.scores[shift] = value;
      else
        out.scores[place] = out.kind == ScoreKind::value ? value_of(value, criterion) : value;
    }
    if (!out.peaks) return;
    __syncthreads();
    find_peak(view, criterion, result.scores, view.nx, out.peaks + pair);
    __syncthreads();  // the scores are overwritten for the next task
  });
}

// ---- Memory, and the launches ----

/// The references of a job's pairs: a stretch of its references.
struct ReferenceRange {
  std::int64_t first, count;

  explicit ReferenceRange(const NccJob& job) {
    const std::int64_t m = make_job_view(job).windows_per_reference;
    first = job.first_pair / m;
    count = (job.first_pair + job.pairs - 1) / m - first + 1;
  }
};

/// Divides memory into parts; without memory it counts the bytes that they need.
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

MaskedReferences place_references(const NccJob& job, Arena& arena) {
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
NccJob with_masked_references(const NccJob& job, const MaskedReferences& references, StreamHandle stream) {
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

int most_shared_bytes() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "Reading the current device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "Reading the size of shared memory");
  return bytes;
}

void launch_products(const NccJob& packed, void* out, Workspace& workspace, StreamHandle stream) {
  const NccDevice device{.shared_bytes = most_shared_bytes()};
  launch_ncc(plan_packed_sums(packed, device), packed, out, workspace, stream);
}

template <typename T, typename Sum>
MaskedTiling tiling_of(const NccJob& job) {
  using Value = RunningSum<T, Sum>;
  return MaskedTiling(job, sizeof(Value), most_shifts<Value>);
}

/// True where peaks need no surfaces in memory.
bool has_all_shifts(const NccJob& job) {
  bool has = false;
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    has = tiling_of<T, Sum>(job).has_all_shifts();
  });
  return has;
}

void launch_scoring(const NccJob& job, Criterion criterion, const MaskedOutput& out, Arena& arena,
                    Workspace& workspace, StreamHandle stream) {
  const MaskedReferences references = place_references(job, arena);
  void* const products = arena.take(job.outputs() * size_of(job.sums));
  const NccJob packed = with_masked_references(job, references, stream);
  launch_products(packed, products, workspace, stream);
  visit_types(packed, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    if constexpr (!std::is_same_v<Sum, float>) {  // scores of floats come from f64
      using Value = RunningSum<T, Sum>;
      const MaskedTiling tiling = tiling_of<T, Sum>(packed);
      const std::int64_t tasks = packed.pairs * tiling.across * tiling.down;
      const auto kernel =
          tiling.has_few_shifts() ? masked_scores<T, Sum, 1> : masked_scores<T, Sum, most_shifts<Value>>;
      kernel<<<grid_size(tasks, 1), threads, BandMemory<Value>::bytes(tiling, references.row_words),
               stream>>>(make_job_view(packed), references, tiling, criterion,
                         static_cast<const Sum*>(products), out);
    }
  });
  check_launch(describe("scores of masked references", job));
}

}  // namespace

std::string Masked::unsupported_reason(const NccJob& job) {
  bool fits = true;
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    if (job.shifts.count() > 0) fits = tiling_of<T, Sum>(job).band > 0;
  });
  return fits ? "" : "cuda-masked does references of up to about 2000 columns.";
}

std::size_t masked_workspace_bytes(const NccJob& job) {
  Arena arena(nullptr);
  place_references(job, arena);
  arena.take(job.outputs() * size_of(job.sums));
  if (!has_all_shifts(job)) {
    arena.take(job.outputs() * sizeof(float));
    arena.take(peaks_workspace_bytes(job));
  }
  return arena.used();
}

void launch_masked_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  launch_products(with_masked_references(job, place_references(job, arena), stream), out, workspace, stream);
}

void launch_masked_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                          Workspace& workspace, StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  launch_scoring(job, criterion, {.kind = kind, .scores = scores}, arena, workspace, stream);
}

void launch_masked_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                         StreamHandle stream) {
  if (job.outputs() == 0) return;
  Arena arena(workspace.memory().reserve(masked_workspace_bytes(job)));
  if (has_all_shifts(job)) return launch_scoring(job, criterion, {.peaks = peaks}, arena, workspace, stream);
  auto* const scores = arena.take<float>(job.outputs());
  void* const memory = arena.take(peaks_workspace_bytes(job));
  launch_scoring(job, criterion, {.scores = scores}, arena, workspace, stream);
  launch_peaks(job, criterion, scores, peaks, memory, stream);
}

void Masked::launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) {
  launch_masked_sums(job, out, workspace, stream);
}
void Masked::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                           Workspace& workspace, StreamHandle stream) {
  launch_masked_scores(job, criterion, kind, scores, workspace, stream);
}
void Masked::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                          StreamHandle stream) {
  launch_masked_peaks(job, criterion, peaks, workspace, stream);
}

}  // namespace dic::kernels

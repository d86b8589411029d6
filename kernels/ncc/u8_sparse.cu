#include <cudaTypedefs.h>

#include <algorithm>
#include <cuda/ptx>
#include <iterator>
#include <new>

#include "common/resident_blocks.hpp"
#include "ncc/find_peak.cuh"
#include "ncc/sparse_products.cuh"
#include "ncc/tensor_shares.cuh"
#include "ncc/u8_scores.cuh"
#include "ncc/u8_sparse.hpp"

// Exact peaks of 8-bit pictures on sparse tensor cores (sparse_products.cuh says how). A warp is alone in its
// block and does one pair after the other: the copy engine (TMA) brings a window and a reference to shared
// memory, as they lie in the picture; the warp makes operands of them, and multiplies and scores these while
// the next two are on their way.
namespace dic::kernels {
namespace {

/// What a warp computes: 32 columns by 4 * lines rows of shifts; with a tail, one more of both.
struct SparseShape {
  int lines = 0;
  bool tail = false;

  __host__ __device__ constexpr int main_rows() const { return lines * sparse_rows; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  __host__ __device__ constexpr int rows() const { return main_rows() + tail; }
};
/// Those that are compiled, the smallest first.
constexpr SparseShape shapes[]{SparseShape{2}, SparseShape{4}, SparseShape{5},
                               SparseShape{6}, SparseShape{8}, SparseShape{8, true}};
constexpr int most_height = 128;

/// Of rows of scores in shared memory: odd, for lanes along y.
constexpr int tile_stride = columns_per_warp + 1;

/// Of statistics: as many as there are registers for.
template <SparseShape shape>
constexpr int loads_at_once = shape.tail        ? 10
                              : shape.lines > 5 ? 16
                                                : shape.main_rows();
/// Rows of shifts that every job has for which a shape is chosen.
template <SparseShape shape>
__host__ __device__ constexpr int least_rows() {
  int least = 1;
  for (const SparseShape& smaller : shapes)
    if (smaller.rows() < shape.rows()) least = smaller.rows() + 1;
  return least;
}
/// The first shape that has all shifts, or std::size(shapes).
std::size_t choose_shape(const NccJob& job) {
  const auto has_all = [&](const SparseShape& shape) {
    return job.shifts.nx() <= shape.columns() && job.shifts.ny() <= shape.rows();
  };
  return std::ranges::find_if(shapes, has_all) - std::begin(shapes);
}

/// Where things lie in a block's shared memory, in words. The next task's boxes arrive at the end of the
/// operands, and scores take their beginning, when these have been multiplied.
struct SparseLayout {
  int window_rows = 0;     ///< of the window
  int reference_rows = 0;  ///< of operands: below the reference, zeros that the tail meets
  int reference = 0, window_box_at = 0, reference_box_at = 0, words = 0;

  SparseLayout(const NccJob& job, const SparseShape& shape) {
    constexpr int aligned = 128 / sizeof(Word);  // for the copy engine
    const int height = job.reference.height;
    window_rows = height + job.shifts.ny() - 1;
    reference_rows = shape.tail ? round_up(height, 16) : height;
    const int paired_rows = reference_rows + shape.rows() - 1;
    const int of_window = round_up(window_rows * window_box / 4, aligned);
    const int of_reference = round_up(height * reference_box / 4, aligned);
    const int before_window = std::max(words_before_window_box(window_rows), shape.rows() * tile_stride);
    reference = paired_rows * paired_words;
    reference_box_at = round_up(std::max(reference + height * (turned_words - reference_box / 4),
                                         round_up(before_window, aligned) + of_window),
                                aligned);
    window_box_at = reference_box_at - of_window;
    words = std::max(reference_box_at + of_reference, reference + (reference_rows + 1) * turned_words);
  }
  int bytes() const { return words * static_cast<int>(sizeof(Word)); }
};

/// What the copy engine knows of the boxes that it copies.
struct Boxes {
  CUtensorMap window, reference;
};

/// What a lane holds of the shifts: a column of the main part; with a tail, a column of row 32, a row of
/// column 32, from the last one on, and the last lane the first row of that.
template <SparseShape shape>
struct SparseShifts {
  static constexpr int in_main = shape.main_rows(), count = in_main + (shape.tail ? 3 : 0);
  int lane = thread_of_block();

  /// body(i, row, column) for those of the tail.
  template <typename Body>
  __device__ void visit_tail(Body&& body) const {
    if constexpr (shape.tail) {
      body(in_main, in_main, lane);
      body(in_main + 1, in_main - lane, columns_per_warp);
      if (lane == warp_size - 1) body(in_main + 2, 0, columns_per_warp);
    }
  }
};
template <SparseShape shape, typename Value>
using SparseValues = Value[SparseShifts<shape>::count];

/// The sums of products of a lane's shifts. of_window, of_reference: the bytes at which these begin in their
/// chunks. exchange: shared memory, which may be the window's.
template <SparseShape shape>
__device__ void multiply_shifts(unsigned window, unsigned reference, int height, const SparseLane& of_lane,
                                const WhichColumns& columns, unsigned of_window, unsigned of_reference,
                                uint4* exchange, SparseValues<shape, Word>& values) {
  constexpr int in_main = SparseShifts<shape>::in_main;
  SparseSums<shape.lines, shape.tail> sums;
  const unsigned turn = of_window % sparse_block;
  window += 2 * (of_window - turn);  // pairs of columns
  multiply_rows(window + of_lane.in_window(), reference, height, of_lane.turned(columns, turn, of_reference),
                sums);
  if constexpr (shape.tail) {
    const int lane = thread_of_block(), holder = lane % 8 * 4 + 3;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // of column group + 8 i
      const Word value = __shfl_sync(0xffffffffu, sums.of[shape.lines][i], holder);
      if (lane / 8 == i) values[in_main] = value;
    }
    const SparseLane of_column = SparseLane::of_column();
    multiply_column(window + of_column.in_window(), reference, height,
                    of_column.turned(columns, turn + columns_per_warp - sparse_block, of_reference),
                    values[in_main + 1], values[in_main + 2]);
  }
  __syncwarp();
  Word of_column[in_main];
  give_columns<shape.lines>(sums.of, exchange, of_column);
#pragma unroll
  for (int i = 0; i < in_main; ++i) values[i] = of_column[i];
}

/// Turns a lane's sums into what Reference8::score gives. known: the first rows, of which the compiler knows
/// that they are defined. any: some statistics.
template <Measure measure, int known, SparseShape shape>
__device__ void score_rows(const Reference8<measure>& reference, const PairTask& task,
                           const WindowStatistics* any, const SparseShifts<shape>& shifts,
                           const SparseValues<shape, Word>& sums, SparseValues<shape, float>& scores) {
  constexpr int in_main = SparseShifts<shape>::in_main, count = SparseShifts<shape>::count;
  const Defined rows{task.first_y, task.last_y}, of_x{task.first_x, task.last_x};
  const auto row_of = [&](int i) { return i <= in_main ? i : i == in_main + 1 ? in_main - shifts.lane : 0; };
  const auto exists = [&](int i) {
    if (i < known) return true;
    const bool is_mine = i < in_main + 2 || shifts.lane == warp_size - 1;
    return rows.holds(row_of(i)) && (i <= in_main || (is_mine && of_x.holds(columns_per_warp)));
  };
  const float weight = of_x.holds(shifts.lane) ? reference.weight : no_score;
  const WindowStatistics* const of_lane = task.statistics.column(of_x.nearest(shifts.lane));
  const WindowStatistics* const of_tail = shape.tail ? task.statistics.column(columns_per_warp) : any;
  constexpr int at_once = loads_at_once<shape>;
#pragma unroll
  for (int first = 0; first < count; first += at_once) {
    WindowStatistics of_shifts[at_once];
#pragma unroll
    for (int i = first; i < first + at_once && i < count; ++i) {
      const WindowStatistics* const of_column = i <= in_main ? of_lane : of_tail;
      of_shifts[i - first] = load_statistics(exists(i) ? of_column + row_of(i) * statistics_strip : any);
    }
#pragma unroll
    for (int i = first; i < first + at_once && i < count; ++i)
      scores[i] = reference.score(sums[i], of_shifts[i - first],
                                  !exists(i)     ? no_score
                                  : i <= in_main ? weight
                                                 : reference.weight);
    __syncwarp();  // the compiler would have more loads in flight, and other values leave their registers
  }
}
template <Measure measure, SparseShape shape>
__device__ void score_pair(const Reference8<measure>& reference, const PairTask& task,
                           const WindowStatistics* any, const SparseShifts<shape>& shifts,
                           const SparseValues<shape, Word>& sums, SparseValues<shape, float>& scores) {
  constexpr int least = least_rows<shape>(), most = shape.main_rows() - 1;
  const auto are_defined = [&](int rows) { return task.first_y == 0 && task.last_y >= rows - 1; };
  if (are_defined(most))
    score_rows<measure, most>(reference, task, any, shifts, sums, scores);
  else if (least < most && are_defined(least))
    score_rows<measure, least>(reference, task, any, shifts, sums, scores);
  else
    score_rows<measure, 0>(reference, task, any, shifts, sums, scores);
}

/// Finds the peak of a pair's scores. tile: shared memory for them.
template <SparseShape shape>
__device__ void find_peak_of_task(const Frame& frame, Measure measure, const SparseShifts<shape>& shifts,
                                  const SparseValues<shape, float>& scores, float scale, float* tile,
                                  Peak* out) {
  ColumnBest best[shape.tail ? 2 : 1]{{.column = shifts.lane}};
#pragma unroll
  for (int row = 0; row < shape.main_rows(); ++row) {
    tile[row * tile_stride + shifts.lane] = scores[row];
    best[0].take(scores[row]);
  }
  best[shape.tail].column = shape.tail ? columns_per_warp : shifts.lane;
  shifts.visit_tail([&](int i, int row, int column) {
    tile[row * tile_stride + column] = scores[i];
    best[i == shape.main_rows() ? 0 : 1].take(scores[i]);
  });
  find_peak<true>(frame, measure, best, tile, tile_stride, out, scale);
}

template <std::size_t choice>
__global__ void __launch_bounds__(warp_size, 16)
    u8_sparse(const __grid_constant__ Frame frame, const __grid_constant__ SparseLayout layout,
              const __grid_constant__ Boxes boxes, const __grid_constant__ Tasks tasks,
              const __grid_constant__ StatisticsTable statistics, const __grid_constant__ RingMasks masks,
              Measure measure, Peak* peaks) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  namespace ptx = cuda::ptx;
  constexpr SparseShape shape = shapes[choice];
  constexpr int look_ahead = 8;  // tasks that the block's first lanes look up at once
  extern __shared__ __align__(128) Word shared[];
  __shared__ PairTask known[2 * look_ahead];
  __shared__ std::uint64_t copied;  // mbarrier
  __shared__ WhichColumns columns;
  Word *const window = shared, *const reference = shared + layout.reference;
  const int height = frame.reference.height, count = tasks.of_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      new (known + (task + i) % (2 * look_ahead))
          PairTask(frame, tasks, statistics, tasks.task_of_block(task + i));
  };
  const auto copy = [&](int task) {
    if (threadIdx.x != 0) return;
    const PairTask& next = known[task % (2 * look_ahead)];
    const auto box = [&](const int2& at, const CUtensorMap& map, Word* to) {
      const int corner[]{at.x & -chunk_bytes, at.y};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, corner, &copied);
    };
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &copied,
                                   layout.window_rows * window_box + height * reference_box);
    box(next.window, boxes.window, shared + layout.window_box_at);
    box(next.reference, boxes.reference, shared + layout.reference_box_at);
  };

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&copied, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  columns.fill();
  const SparseLane lane = SparseLane::of_rows(shape.lines);
  look_up(0);
  __syncwarp();
  if (count > 0) copy(0);
  for (int i = 0; i < count; ++i) {
    const PairTask& task = known[i % (2 * look_ahead)];
    if (i % look_ahead == look_ahead - 1) look_up(i + 1);
    while (!ptx::mbarrier_try_wait_parity(&copied, i % 2)) {
    }
    pair_columns(shared + layout.window_box_at, layout.window_rows, window);
    const int of_reference = task.reference.x & (chunk_bytes - 1);
    const ReferenceSums sums_of_reference =
        turn_reference(shared + layout.reference_box_at, height, of_reference, masks, reference);
    if constexpr (shape.tail)
      for (int j = height * turned_words + thread_of_block(); j < layout.reference_rows * turned_words;
           j += warp_size)
        reference[j] = 0;
    __syncwarp();
    SparseValues<shape, Word> sums;
    multiply_shifts<shape>(shared_address(window), shared_address(reference), height, lane, columns,
                           task.window.x & (chunk_bytes - 1), of_reference, reinterpret_cast<uint4*>(window),
                           sums);
    ptx::fence_proxy_async(ptx::space_shared);  // operands are overwritten by copies
    __syncwarp();
    if (i + 1 < count) copy(i + 1);
    const SparseShifts<shape> shifts;
    SparseValues<shape, float> scores;
    float scale = no_score;
    visit_measure(measure, [&]<Measure known_measure> {
      const Reference8<known_measure> of_reference(height * frame.reference.width, sums_of_reference);
      scale = of_reference.scale;
      score_pair<known_measure>(of_reference, task, statistics.first, shifts, sums, scores);
    });
    find_peak_of_task(frame, measure, shifts, scores, scale, reinterpret_cast<float*>(window),
                      peaks + task.pair);
    __syncwarp();  // what the task used is free now
  }
#endif
}

/// True where the code for the current device has what Hopper's instructions need.
bool is_compiled_for_device() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, u8_sparse<0>), "Asking what a kernel was compiled for");
  return attributes.ptxVersion >= 90;
}

/// Describes boxes of width x height of a picture, whose columns begin with a chunk; false where the copy
/// engine cannot copy them.
bool describe_boxes(const DevicePicture& picture, int width, int height, CUtensorMap& map) {
  static const auto encode = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000,
                                                              cudaEnableDefault, &result);
    const bool found = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return found ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(address) : nullptr;
  }();
  const auto of_first = reinterpret_cast<std::uintptr_t>(picture.data);
  const bool whole_chunks = (of_first | static_cast<std::uintptr_t>(picture.row_bytes)) % chunk_bytes == 0;
  const bool exists = picture.data && picture.width > 0 && picture.height > 0 && picture.row_bytes > 0;
  if (!encode || !whole_chunks || !exists) return false;
  const cuuint64_t size[]{static_cast<cuuint64_t>(picture.width), static_cast<cuuint64_t>(picture.height)};
  const cuuint64_t row_bytes[]{static_cast<cuuint64_t>(picture.row_bytes)};
  const cuuint32_t box[]{static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(height)};
  constexpr cuuint32_t steps[]{1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(picture.data), size, row_bytes, box,
                steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <std::size_t choice>
void launch_shape(const NccJob& job, const Boxes& boxes, const SparseLayout& layout,
                  const StatisticsTable& statistics, Measure measure, Peak* peaks, StreamHandle stream) {
  Tasks tasks(job, shapes[choice].columns(), shapes[choice].rows());
  const auto kernel = u8_sparse<choice>;
  const std::int64_t blocks = tasks.deal(resident_blocks(kernel, warp_size, layout.bytes()), false);
  kernel<<<static_cast<unsigned>(blocks), warp_size, layout.bytes(), stream>>>(
      make_frame(job), layout, boxes, tasks, statistics, RingMasks(job.reference.width), measure, peaks);
}

}  // namespace

bool launch_u8_sparse_peaks(const NccJob& job, const StatisticsTable& statistics, Measure measure,
                            Peak* peaks, StreamHandle stream) {
  const std::size_t choice = choose_shape(job);
  if (choice == std::size(shapes) || job.reference.width > sparse_period ||
      job.reference.height > most_height || !is_compiled_for_device())
    return false;
  const SparseLayout layout(job, shapes[choice]);
  Boxes boxes;
  if (!describe_boxes(job.search.only, window_box, layout.window_rows, boxes.window) ||
      !describe_boxes(job.reference.only, reference_box, job.reference.height, boxes.reference))
    return false;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((choice == i ? launch_shape<i>(job, boxes, layout, statistics, measure, peaks, stream) : void()), ...);
  }
  (std::make_index_sequence<std::size(shapes)>{});
  check_launch(describe("cuda-u8-tensor", job));
  return true;
}

}  // namespace dic::kernels

#include <cudaTypedefs.h>

#include <algorithm>
#include <cuda/ptx>
#include <iterator>
#include <new>

#include "common/resident_blocks.hpp"
#include "ncc/scoring/find_peak.cuh"
#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/pair_task.cuh"
#include "ncc/tensor/sparse_products.cuh"
#include "ncc/tensor/task_batches.hpp"
#include "ncc/tensor/u8_scores.cuh"
#include "ncc/tensor/u8_sparse.hpp"

// Exact peaks of 8-bit images on sparse tensor cores (see sparse_products.cuh). A block is one warp and
// computes one pair after the other: the copy engine (TMA) copies a window and a reference to shared memory,
// as they lie in the image; the warp converts them to operands, and multiplies and scores these while the
// next two are copied.
namespace dic::kernels {
namespace {

/// Shifts that a warp computes: 32 columns by 4 * lines rows; with a tail, one more of both.
struct SparseShape {
  int lines = 0;
  bool tail = false;

  __host__ __device__ constexpr int main_rows() const { return lines * sparse_rows; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  __host__ __device__ constexpr int rows() const { return main_rows() + tail; }
};
/// The shapes that are compiled, the smallest first.
constexpr SparseShape shapes[]{SparseShape{2}, SparseShape{4}, SparseShape{5},
                               SparseShape{6}, SparseShape{8}, SparseShape{8, true}};
constexpr int most_height = 128;

/// Stride of rows of scores in shared memory: odd, for lanes along y.
constexpr int tile_stride = columns_per_warp + 1;

/// Statistics that a lane loads at once: as many as there are registers for.
template <SparseShape shape>
constexpr int loads_at_once = shape.tail        ? 10
                              : shape.lines > 5 ? 16
                                                : shape.main_rows();
/// The fewest rows of shifts of a job for which the shape is chosen.
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

/// Offsets in a block's shared memory, in words. The boxes of the next task overwrite the end of the operands
/// once these have been multiplied; scores overwrite their beginning.
struct SparseLayout {
  int window_rows = 0;     ///< rows of the window
  int reference_rows = 0;  ///< rows of operands; zeros for the tail lie below the reference
  int passes = 1;          ///< passes that convert boxes; operands may overwrite what a pass has loaded
  int reference = 0, window_box_at = 0, reference_box_at = 0, words = 0;
  Word halves = swapped_halves;  ///< argument of multiply_rows
  RingMasks masks;               ///< masks of the rows of the reference

  SparseLayout(const NccJob& job, const SparseShape& shape) : masks(job.reference.width) {
    constexpr int aligned = 128 / sizeof(Word);  // as the copy engine requires
    const int height = job.reference.height;
    window_rows = height + job.shifts.ny() - 1;
    reference_rows = shape.tail ? round_up(height, 16) : height;
    reference = (reference_rows + shape.rows() - 1) * paired_words;
    passes = std::max(round_up(window_rows, window_rows_per_pass) / window_rows_per_pass,
                      round_up(reference_rows, reference_rows_per_pass) / reference_rows_per_pass);
    const int window_part = round_up(window_rows * window_box / 4, aligned);
    window_box_at = shape.rows() * tile_stride;
    for (int done = 1; done < passes; ++done) {
      const int rows_stored = std::min(done * reference_rows_per_pass, reference_rows);
      const int rows_loaded = std::min(done * window_rows_per_pass, window_rows);
      const int reference_part = rows_loaded < window_rows ? 0 : rows_stored * reference_box / 4;
      const int loaded = reference_part > 0 ? window_part + reference_part : rows_loaded * window_box / 4;
      window_box_at = std::max(window_box_at, reference + rows_stored * rotated_words - loaded);
    }
    window_box_at = round_up(window_box_at, aligned);
    reference_box_at = window_box_at + window_part;
    words = std::max(reference_box_at + round_up(height * reference_box / 4, aligned),
                     reference + (reference_rows + 2) * rotated_words);
  }
  int bytes() const { return words * static_cast<int>(sizeof(Word)); }
};

/// Descriptions of the boxes for the copy engine.
struct Boxes {
  CUtensorMap window, reference;
};

/// Shifts of a lane: column `lane` of the main part; with a tail also column `lane` of row 32, row 32 - lane
/// of column 32 and, in the last lane, row 0 of column 32.
template <SparseShape shape>
struct SparseShifts {
  static constexpr int in_main = shape.main_rows(), count = in_main + (shape.tail ? 3 : 0);
  int lane = thread_of_block();

  /// Calls body(i, row, column) for the shifts of the tail.
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

/// Converts a task's boxes to operands, in `shared`. Returns the sums over the reference. (For GPUs before
/// Hopper, the kernel is empty.)
[[maybe_unused]] __device__ ReferenceSums make_operands(Word* shared, const SparseLayout& layout, int height,
                                                        unsigned reference_byte) {
  const Word *const window_box = shared + layout.window_box_at, *const reference_box =
                                                                    shared + layout.reference_box_at;
  ReferenceSums sums{0, 0};
  int upper = thread_of_block(), reference_row = upper;
#pragma unroll 1
  for (int pass = 0; pass < layout.passes; ++pass) {
    if (pass > 0) __syncwarp();  // lanes without a row load from boxes that this pass overwrites
    const int lower = upper + warp_size;
    WindowRow upper_row, lower_row;
    ReferenceRow reference;
    upper_row.load(window_box, min(upper, layout.window_rows - 1));
    lower_row.load(window_box, min(lower, layout.window_rows - 1));
    reference.load(reference_box, min(reference_row, height - 1), reference_row < height, reference_byte,
                   layout.masks);
    reference.add_to(sums);
    __syncwarp();
    if (upper < layout.window_rows) upper_row.store(shared, upper);
    if (lower < layout.window_rows) lower_row.store(shared, lower);
    if (reference_row < layout.reference_rows) reference.store(shared + layout.reference, reference_row);
    upper += window_rows_per_pass, reference_row += reference_rows_per_pass;
  }
  return {__reduce_add_sync(all_lanes, sums.sum), __reduce_add_sync(all_lanes, sums.squares)};
}

/// The operands of a pair in shared memory.
struct SparseOperands {
  unsigned window, reference;            ///< addresses
  unsigned window_byte, reference_byte;  ///< bytes at which window and reference begin in their chunks
  int height;                            ///< rows of the reference
  Word halves;
};

/// Computes the sums of products at a pair's shifts: `values` receives those of a lane's tail, `sums` the
/// others, in the order of the instruction.
template <SparseShape shape>
__device__ void multiply_shifts(const SparseOperands& operands, const SparseLane& lane,
                                const WhichColumns& columns, SparseSums<shape.lines, shape.tail>& sums,
                                SparseValues<shape, Word>& values) {
  constexpr int in_main = SparseShifts<shape>::in_main;
  const auto [first, reference, window_byte, reference_byte, height, halves] = operands;
  const unsigned rotation = window_byte % sparse_block;
  const unsigned window = first + 2 * (window_byte - rotation);  // pairs of columns
  multiply_rows(window + lane.in_window(), reference, height, lane.rotated(columns, rotation, reference_byte),
                halves, sums);
  if constexpr (shape.tail) {
    const int lane = thread_of_block(), holder = lane % 8 * 4 + 3;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // the sum of column group + 8 i
      const Word value = __shfl_sync(all_lanes, sums.of[shape.lines][i], holder);
      if (lane / 8 == i) values[in_main] = value;
    }
    const SparseLane column_lane = SparseLane::for_column();
    multiply_column(window + column_lane.in_window(), reference, height,
                    column_lane.rotated(columns, rotation + columns_per_warp - sparse_block, reference_byte),
                    values[in_main + 1], values[in_main + 2]);
  }
}
/// Moves the sums of the main part to `values`, too. exchange: shared memory.
template <SparseShape shape>
__device__ void order_sums(const SparseSums<shape.lines, shape.tail>& sums, Word* exchange,
                           SparseValues<shape, Word>& values) {
  constexpr int in_main = SparseShifts<shape>::in_main;
  Word column_sums[in_main];
  give_columns<shape.lines>(sums.of, reinterpret_cast<uint4*>(exchange), column_sums);
#pragma unroll
  for (int i = 0; i < in_main; ++i) values[i] = column_sums[i];
}

/// Computes Reference8::score for a lane's shifts, and returns Reference8::scale. known: the number of first
/// rows that are known at compile time to be defined. any: statistics that exist, which are read if no shift
/// of the pair is defined.
template <Criterion criterion, int known, SparseShape shape>
__device__ float score_rows(int elements, const ReferenceSums& sums_of_reference, const PairTask& task,
                            const WindowStatistics* any, const SparseShifts<shape>& shifts,
                            const SparseValues<shape, Word>& sums, SparseValues<shape, float>& scores) {
  constexpr int in_main = SparseShifts<shape>::in_main, count = SparseShifts<shape>::count;
  const Defined rows = task.defined_y, defined_x = task.defined_x;
  const auto row_of = [&](int i) { return i <= in_main ? i : i == in_main + 1 ? in_main - shifts.lane : 0; };
  const auto exists = [&](int i) {
    if (i < known) return true;
    const bool is_mine = i < in_main + 2 || shifts.lane == warp_size - 1;
    return rows.holds(row_of(i)) && (i <= in_main || (is_mine && defined_x.holds(columns_per_warp)));
  };
  const bool has_some = known > 0 || rows.last >= rows.first;
  const Defined existing = has_some ? rows : Defined{0, 0};
  const WindowStatistics* const lane_statistics =
      has_some ? task.statistics.column(defined_x.nearest(shifts.lane)) : any;
  const WindowStatistics* const tail_statistics =
      shape.tail && has_some ? task.statistics.column(defined_x.nearest(columns_per_warp)) : any;
  const auto address = [&](int i) {
    const WindowStatistics* const column_statistics = i <= in_main ? lane_statistics : tail_statistics;
    return column_statistics + (i < known ? i : existing.nearest(row_of(i))) * statistics_strip;
  };
  const Reference8<criterion> reference(elements, sums_of_reference);
  const float weight = defined_x.holds(shifts.lane) ? reference.weight : no_score;
  constexpr int at_once = known > 0 ? loads_at_once<shape> : 12;  // the tests take registers, too
#pragma unroll
  for (int first = 0; first < count; first += at_once) {
    WindowStatistics shift_statistics[at_once];
#pragma unroll
    for (int i = first; i < first + at_once && i < count; ++i)
      shift_statistics[i - first] = load_statistics(address(i));
#pragma unroll
    for (int i = first; i < first + at_once && i < count; ++i)
      scores[i] = reference.score(sums[i], shift_statistics[i - first],
                                  !exists(i)     ? no_score
                                  : i <= in_main ? weight
                                                 : reference.weight);
    __syncwarp();  // otherwise the compiler starts more loads at once, and spills registers
  }
  return reference.scale;
}
template <Criterion criterion, SparseShape shape>
__device__ float score_pair(int elements, const ReferenceSums& reference_sums, const PairTask& task,
                            const WindowStatistics* any, const SparseShifts<shape>& shifts,
                            const SparseValues<shape, Word>& sums, SparseValues<shape, float>& scores) {
  constexpr int least = least_rows<shape>(), most = shape.main_rows() - 1;
  const auto are_defined = [&](int rows) {
    return task.defined_y.first == 0 && task.defined_y.last >= rows - 1;
  };
  if (are_defined(most))
    return score_rows<criterion, most>(elements, reference_sums, task, any, shifts, sums, scores);
  if (least < most && are_defined(least))
    return score_rows<criterion, least>(elements, reference_sums, task, any, shifts, sums, scores);
  return score_rows<criterion, 0>(elements, reference_sums, task, any, shifts, sums, scores);
}

/// Finds the peak of a pair's scores. tile: shared memory for the scores.
template <SparseShape shape>
__device__ void find_peak_of_task(const JobView& view, Criterion criterion, const SparseShifts<shape>& shifts,
                                  const SparseValues<shape, float>& scores, float scale, float* tile,
                                  Peak* out) {
  constexpr int chains = 4;  // independent maxima
  float chain_best[chains]{undefined, undefined, undefined, undefined}, tail_best = undefined;
#pragma unroll
  for (int row = 0; row < shape.main_rows(); ++row) {
    tile[row * tile_stride + shifts.lane] = scores[row];
    chain_best[row % chains] = fmaxf(chain_best[row % chains], scores[row]);
  }
  shifts.visit_tail([&](int i, int row, int column) {
    tile[row * tile_stride + column] = scores[i];
    float& best = i == shape.main_rows() ? chain_best[0] : tail_best;
    best = fmaxf(best, scores[i]);
  });
  const float best = fmaxf(fmaxf(chain_best[0], chain_best[1]), fmaxf(chain_best[2], chain_best[3]));
  find_peak_of_warp<shape.tail>(view, criterion, best, tail_best, {tile, tile_stride}, out, scale);
}

/// Takes the next batch of tasks. One warp must call it. taken: zero before the launch.
[[maybe_unused]] __device__ TaskBatch take_batch(const TaskBatches& batches, unsigned* taken) {
  unsigned number = 0;
  if (thread_of_block() == 0) number = atomicAdd(taken, 1);
  return batches.batch(__shfl_sync(all_lanes, number, 0));
}

/// The tasks of a launch, and their division into batches.
struct BatchedTasks {
  Tasks tasks;
  TaskBatches batches;
};

template <std::size_t choice>
__global__ void __launch_bounds__(warp_size, 16)
    u8_sparse(const __grid_constant__ JobView view, const __grid_constant__ SparseLayout layout,
              const __grid_constant__ Boxes boxes, const __grid_constant__ BatchedTasks work,
              const __grid_constant__ StatisticsTable statistics, Criterion criterion, Peak* peaks) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  namespace ptx = cuda::ptx;
  constexpr SparseShape shape = shapes[choice];
  constexpr int look_ahead = 8;  // tasks that the block's first lanes look up at once
  const auto& [tasks, batches] = work;
  extern __shared__ __align__(128) Word shared[];
  __shared__ PairTask known[2 * look_ahead];
  __shared__ std::uint64_t copied;  // mbarrier
  __shared__ WhichColumns columns;
  const int height = view.reference.height;
  // Looks up the block's next tasks, beginning with number `first`. Returns how many it found.
  const auto look_up = [&](int first) {
    const int ahead = threadIdx.x;
    std::int64_t task = std::int64_t{first + ahead} * gridDim.x + blockIdx.x;
    int found = min(look_ahead, batches.rounds - first);
    if (found <= 0) {
      if (batches.all_assigned()) return 0;
      const TaskBatch batch = take_batch(batches, statistics.taken);
      task = batch.first + ahead, found = batch.tasks;
    }
    if (ahead < found)
      new (known + (first + ahead) % (2 * look_ahead)) PairTask(view, tasks, statistics, task);
    return found;
  };
  const auto copy = [&](int task) {
    if (threadIdx.x != 0) return;
    const int4 boxes_at = known[task % (2 * look_ahead)].boxes;
    const auto box = [&](int x, int y, const CUtensorMap& map, Word* to) {
      const int corner[]{x, y};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, corner, &copied);
    };
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &copied,
                                   layout.window_rows * window_box + height * reference_box);
    box(boxes_at.x, boxes_at.y, boxes.window, shared + layout.window_box_at);
    box(boxes_at.z, boxes_at.w, boxes.reference, shared + layout.reference_box_at);
  };

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&copied, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  columns.fill();
  const SparseLane lane = SparseLane::for_rows(shape.lines);
  int count = look_up(0);
  __syncwarp();
  copy(0);
  for (int i = 0;; ++i) {
    const PairTask& task = known[i % (2 * look_ahead)];
    if (i + 1 == count) count += look_up(count);
    const bool more = i + 1 < count;
    while (!ptx::mbarrier_try_wait_parity(&copied, i % 2)) {
    }
    const ReferenceSums reference_sums = make_operands(shared, layout, height, task.reference_byte);
    ptx::fence_proxy_async(ptx::space_shared);  // the next boxes overwrite operands
    __syncwarp();
    SparseSums<shape.lines, shape.tail> products;
    SparseValues<shape, Word> sums;
    multiply_shifts<shape>({.window = shared_address(shared),
                            .reference = shared_address(shared + layout.reference),
                            .window_byte = static_cast<unsigned>(task.window_byte),
                            .reference_byte = static_cast<unsigned>(task.reference_byte),
                            .height = height,
                            .halves = layout.halves},
                           lane, columns, products, sums);
    __syncwarp();
    if (more) copy(i + 1);
    order_sums<shape>(products, shared, sums);
    const SparseShifts<shape> shifts;
    SparseValues<shape, float> scores;
    float scale = no_score;
    visit_criterion(criterion, [&]<Criterion known_criterion> {
      scale = score_pair<known_criterion>(height * view.reference.width, reference_sums, task,
                                          statistics.first, shifts, sums, scores);
    });
    find_peak_of_task(view, criterion, shifts, scores, scale, reinterpret_cast<float*>(shared),
                      peaks + task.pair);
    if (!__any_sync(all_lanes, more)) break;  // the vote tells the compiler that the branch is uniform
    __syncwarp();                             // the memory of the task is free now
  }
#endif
}

/// True if the kernel was compiled for the current device with Hopper's instructions.
bool is_compiled_for_device() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, u8_sparse<0>), "Asking what a kernel was compiled for");
  return attributes.ptxVersion >= 90;
}

/// Describes boxes of width x height of an image, whose columns begin with a chunk. Returns false if the copy
/// engine cannot copy them.
bool describe_boxes(const DeviceImage& image, int width, int height, CUtensorMap& map) {
  static const auto encode = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000,
                                                              cudaEnableDefault, &result);
    const bool found = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return found ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(address) : nullptr;
  }();
  const auto first_address = reinterpret_cast<std::uintptr_t>(image.data);
  const bool whole_chunks = (first_address | static_cast<std::uintptr_t>(image.row_bytes)) % chunk_bytes == 0;
  const bool exists = image.data && image.width > 0 && image.height > 0 && image.row_bytes > 0;
  if (!encode || !whole_chunks || !exists) return false;
  const cuuint64_t size[]{static_cast<cuuint64_t>(image.width), static_cast<cuuint64_t>(image.height)};
  const cuuint64_t row_bytes[]{static_cast<cuuint64_t>(image.row_bytes)};
  const cuuint32_t box[]{static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(height)};
  constexpr cuuint32_t steps[]{1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(image.data), size, row_bytes, box,
                steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <std::size_t choice>
void launch_shape(const NccJob& job, const Boxes& boxes, const SparseLayout& layout,
                  const StatisticsTable& statistics, Criterion criterion, Peak* peaks, StreamHandle stream) {
  const Tasks tasks(job, shapes[choice].columns(), shapes[choice].rows());
  const auto kernel = u8_sparse<choice>;
  const std::int64_t blocks = std::min(job.pairs, resident_blocks(kernel, warp_size, layout.bytes()));
  kernel<<<static_cast<unsigned>(blocks), warp_size, layout.bytes(), stream>>>(
      make_job_view(job), layout, boxes, {tasks, TaskBatches(job.pairs, blocks)}, statistics, criterion,
      peaks);
}

}  // namespace

bool launch_u8_sparse_peaks(const NccJob& job, const StatisticsTable& statistics, Criterion criterion,
                            Peak* peaks, StreamHandle stream) {
  const std::size_t choice = choose_shape(job);
  if (choice == std::size(shapes) || job.reference.width > sparse_period ||
      job.reference.height > most_height || !is_compiled_for_device())
    return false;
  const SparseLayout layout(job, shapes[choice]);
  Boxes boxes;
  if (!describe_boxes(job.search.single_image, window_box, layout.window_rows, boxes.window) ||
      !describe_boxes(job.reference.single_image, reference_box, job.reference.height, boxes.reference))
    return false;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((choice == i ? launch_shape<i>(job, boxes, layout, statistics, criterion, peaks, stream) : void()), ...);
  }
  (std::make_index_sequence<std::size(shapes)>{});
  check_launch(describe("cuda-u8-tensor", job));
  return true;
}

}  // namespace dic::kernels

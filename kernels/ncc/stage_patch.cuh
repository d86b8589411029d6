#pragma once

#include "ncc/job_view.cuh"

/// Copies patches of bytes to shared memory. The first element of a word is its lowest byte.
///
/// Rows are copied in whole chunks of 16 bytes. A row may begin at any byte of a chunk: the copy keeps that
/// offset, and reads of the row add it. If whole chunks would reach beyond the image, or hold elements that
/// must be zero, words are assembled one by one.
namespace dic::kernels {

using u8 = std::uint8_t;
using Word = std::uint32_t;

constexpr int chunk_bytes = 16;
/// Zero bytes before a row of the reference: room for shifts of up to 3 bytes, twice.
constexpr int reference_pad = chunk_bytes;

__host__ __device__ constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

__device__ inline unsigned shared_address(const Word* word) {
  return static_cast<unsigned>(__cvta_generic_to_shared(word));
}

/// Address of row `row` for rows of `row_bytes` bytes, in one instruction.
template <typename T>
__device__ const T* row_of(const T* first, int row, int row_bytes) {
  const T* address;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(address) : "r"(row), "r"(row_bytes), "l"(first));
  return address;
}
/// Starts a copy of the first `bytes` bytes of a chunk; zeros follow them. `shared`: an address in shared
/// memory.
__device__ inline void copy_chunk(unsigned shared, const u8* global, int bytes = chunk_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Distributes the cells of a table over the threads of a block: a power of two of neighbouring threads share
/// a row.
struct Cells {
  int shift;

  __device__ explicit Cells(int columns) { shift = columns > 1 ? min(32 - __clz(columns - 1), 5) : 0; }
  __device__ int column() const { return threadIdx.x & ((1 << shift) - 1); }
  __device__ int columns_at_once() const { return 1 << shift; }
  __device__ int row() const { return threadIdx.x >> shift; }
  __device__ int rows_at_once() const { return blockDim.x >> shift; }
};
/// Division of numbers below 2^16 / divisor by a divisor that the host knows.
struct Divisor {
  int divisor = 1;
  unsigned inverse = 65537;

  Divisor() = default;
  explicit Divisor(int by) : divisor(by), inverse(65536u / by + 1) {}
  __device__ int quotient(int number) const { return static_cast<int>(number * inverse >> 16); }
};

/// Distributes rows of any number of chunks over the threads of a block. Some threads may have none.
struct ChunkCells {
  int column, row, rows_at_once;

  __device__ explicit ChunkCells(const Divisor& chunks)
      : row(chunks.quotient(threadIdx.x)), rows_at_once(chunks.quotient(blockDim.x)) {
    column = static_cast<int>(threadIdx.x) - row * chunks.divisor;
  }
  __device__ bool has_part() const { return row < rows_at_once; }
};
/// Largest number of chunks that a row of `bytes` bytes touches.
__host__ __device__ constexpr int most_chunks(int bytes) {
  return (chunk_bytes - 1 + bytes - 1) / chunk_bytes + 1;
}

/// Mask of the lowest n bytes of a word.
__device__ inline Word low_bytes(int n) { return ~__funnelshift_lc(0, 0xffffffffu, 8 * max(n, 0)); }

/// True if every row of the image is whole chunks.
__device__ inline bool has_whole_chunks(const DevicePatches& patches, std::int64_t index) {
  const DeviceImage image = patches.images[patches.positions[index].image];
  return (reinterpret_cast<std::uintptr_t>(image.data) | static_cast<std::uintptr_t>(image.row_bytes)) %
             chunk_bytes ==
         0;
}

/// The patch with its bytes as elements.
template <typename T>
__device__ PatchView<u8> bytes_of(const PatchView<T>& matrix) {
  constexpr int bytes = sizeof(T);
  return {reinterpret_cast<const u8*>(matrix.origin),
          matrix.row_bytes,
          bytes * matrix.x0,
          bytes * matrix.x1,
          matrix.y0,
          matrix.y1};
}

/// Copies rows x words of a patch, beginning at (y, x); elements that do not exist are zero. Global memory is
/// read in aligned words that hold at least one existing element. at_once: rows that a thread loads before it
/// stores any; each takes registers.
template <int at_once = 1>
__device__ void stage_words(const PatchView<u8>& matrix, int y, int x, int rows, int words, int stride,
                            Word* shared) {
  const Cells cells(words);
  for (int word = cells.column(); word < words; word += cells.columns_at_once()) {
    const int column = x + 4 * word;
    const int first = min(max(matrix.x0 - column, 0), 4), end = min(max(matrix.x1 - column, 0), 4);
    const Word mask = low_bytes(end) & ~low_bytes(first);
    const bool exists = mask != 0 && matrix.y0 < matrix.y1;
    const auto word_of = [&](int row) -> Word {
      const int existing_row = min(max(row, matrix.y0), matrix.y1 - 1);
      const auto address = reinterpret_cast<std::uintptr_t>(matrix.row(existing_row) + column);
      const int offset = static_cast<int>(address & 3);
      const auto* aligned = reinterpret_cast<const Word*>(address - offset);
      const Word low = exists ? __ldg(aligned + (offset + first) / 4) : 0;
      const Word high = exists ? __ldg(aligned + (offset + end - 1) / 4) : 0;
      return row == existing_row ? __funnelshift_r(low, high, 8 * offset) & mask : 0;
    };
    for (int row = cells.row(); row < rows;) {
      Word values[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) values[i] = word_of(y + row + i * cells.rows_at_once());
#pragma unroll
      for (int i = 0; i < at_once; ++i, row += cells.rows_at_once())
        if (row < rows) shared[row * stride + word] = values[i];
    }
  }
}

/// Starts the copies of this thread's chunk of each of its rows: copy(target, chunk). `source`: first chunk
/// of the first row.
template <typename Copy>
__device__ void copy_rows(const u8* source, int row_bytes, int rows, const ChunkCells& cells, int stride,
                          Word* shared, Copy&& copy) {
  if (!cells.has_part()) return;
  const int row_step = stride * static_cast<int>(sizeof(Word));
  const unsigned first = shared_address(shared) + cells.column * chunk_bytes, end = first + rows * row_step;
  const int source_step = cells.rows_at_once * row_bytes;
  source += cells.row * row_bytes;
  constexpr int at_once = 4;
#pragma unroll 1
  for (unsigned target = first + cells.row * row_step; target < end;) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (target < end) copy(target, source);
      target += cells.rows_at_once * row_step;
      source = row_of(source, 1, source_step);
    }
  }
}
/// Starts the copies of whole chunks.
__device__ inline void copy_rows(const u8* source, int row_bytes, int rows, const ChunkCells& cells,
                                 int stride, Word* shared) {
  copy_rows(source + cells.column * chunk_bytes, row_bytes, rows, cells, stride, shared,
            [](unsigned target, const u8* chunk) { copy_chunk(target, chunk); });
}
/// Starts the copies of the first `bytes` bytes of rows; zeros follow in their last chunk, and in the chunks
/// after it.
__device__ inline void copy_rows(const u8* source, int row_bytes, int rows, const ChunkCells& cells,
                                 int stride, Word* shared, int bytes) {
  const int column = cells.column * chunk_bytes, existing = max(min(bytes - column, chunk_bytes), 0);
  copy_rows(source + (existing > 0 ? column : 0), row_bytes, rows, cells, stride, shared,
            [=](unsigned target, const u8* chunk) { copy_chunk(target, chunk, existing); });
}

/// Copies a rectangle of window number `index`; cells: for most_chunks(rectangle.columns). Returns the byte
/// (0..15) of the shared rows at which it begins. Call wait_for_copies() before the block synchronizes.
__device__ inline int stage_window(const DevicePatches& patches, const PatchView<u8>& window,
                                   std::int64_t index, const PatchRectangle& rectangle,
                                   const ChunkCells& cells, int stride, Word* shared) {
  const auto [y, x, rows, columns] = rectangle;
  const bool inside = x >= window.x0 && x + columns <= window.x1 && y >= window.y0 && y + rows <= window.y1;
  if (!inside || !has_whole_chunks(patches, index)) {
    stage_words(window, y, x, rows, (columns + 3) / 4, stride, shared);
    return 0;
  }
  const u8* first = window.row(y) + x;
  const int offset = static_cast<int>(reinterpret_cast<std::uintptr_t>(first) % chunk_bytes);
  if (cells.column * chunk_bytes < offset + columns)
    copy_rows(first - offset, static_cast<int>(window.row_bytes), rows, cells, stride, shared);
  return offset;
}

/// Zeroes rows 0 .. last_row of shared memory, which begins with a chunk. All threads of the block must call
/// it and synchronize afterwards.
__device__ inline void clear_rows(int last_row, int stride, Word* shared) {
  const int chunks = (last_row + 1) * stride / 4;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) reinterpret_cast<uint4*>(shared)[i] = {0, 0, 0, 0};
}

}  // namespace dic::kernels

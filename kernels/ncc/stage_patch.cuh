#pragma once

#include "ncc/job_view.cuh"

/// Brings 8-bit matrices to shared memory. The first element of a word is its lowest byte.
///
/// Rows are copied in whole chunks of 16 bytes, at whatever byte of a chunk they begin: nothing is realigned,
/// the reader accounts for the offset. Where that would read outside of an image, or elements that must be
/// zero, words are put together one by one.
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

/// Row `row` of rows of bytes, in one instruction.
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

/// How the threads of a block share the cells of a table: a power of two of neighbouring threads to a row.
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

/// How they share the chunks of rows that need not be a power of two; some threads have none.
struct ChunkCells {
  int column, row, rows_at_once;

  __device__ explicit ChunkCells(int chunks)
      : column(static_cast<int>(threadIdx.x) % chunks),
        row(static_cast<int>(threadIdx.x) / chunks),
        rows_at_once(static_cast<int>(blockDim.x) / chunks) {}
  __device__ explicit ChunkCells(const Divisor& chunks)
      : row(chunks.quotient(threadIdx.x)), rows_at_once(chunks.quotient(blockDim.x)) {
    column = static_cast<int>(threadIdx.x) - row * chunks.divisor;
  }
  __device__ bool has_part() const { return row < rows_at_once; }
};
/// The most chunks that a row of `bytes` bytes touches.
__host__ __device__ constexpr int most_chunks(int bytes) {
  return (chunk_bytes - 1 + bytes - 1) / chunk_bytes + 1;
}

/// The lowest n bytes of a word.
__device__ inline Word low_bytes(int n) { return ~__funnelshift_lc(0, 0xffffffffu, 8 * max(n, 0)); }

/// True where every row of the image is whole chunks.
__device__ inline bool has_whole_chunks(const DevicePatches& patches, std::int64_t index) {
  const DeviceImage image = patches.images[patches.positions[index].image];
  return (reinterpret_cast<std::uintptr_t>(image.data) | static_cast<std::uintptr_t>(image.row_bytes)) %
             chunk_bytes ==
         0;
}

/// The matrix with its bytes as elements.
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

/// rows x words of a matrix from (y, x) on; elements that do not exist are zero. Global memory is read in
/// aligned words that hold at least one existing element. at_once: rows whose loads are in flight; they take
/// registers.
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

/// Starts copies of a chunk of rows: copy(target, row's chunk). `source`: the first row's first chunk.
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
/// Whole chunks.
__device__ inline void copy_rows(const u8* source, int row_bytes, int rows, const ChunkCells& cells,
                                 int stride, Word* shared) {
  copy_rows(source + cells.column * chunk_bytes, row_bytes, rows, cells, stride, shared,
            [](unsigned target, const u8* chunk) { copy_chunk(target, chunk); });
}
/// The first `bytes` bytes of rows, between zeros.
__device__ inline void copy_rows(const u8* source, int row_bytes, int rows, const ChunkCells& cells,
                                 int stride, Word* shared, int bytes) {
  const int column = cells.column * chunk_bytes, existing = max(min(bytes - column, chunk_bytes), 0);
  copy_rows(source + (existing > 0 ? column : 0), row_bytes, rows, cells, stride, shared,
            [=](unsigned target, const u8* chunk) { copy_chunk(target, chunk, existing); });
}

/// rows x columns of a window from (y, x) on; cells: for most_chunks(columns). Returns the byte of the shared
/// rows where they begin (0..15). Call wait_for_copies() before the block synchronizes.
__device__ inline int stage_window(const DevicePatches& patches, const PatchView<u8>& window,
                                   std::int64_t index, int y, int x, int rows, int columns,
                                   const ChunkCells& cells, int stride, Word* shared) {
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
__device__ inline int stage_window(const DevicePatches& patches, const PatchView<u8>& window,
                                   std::int64_t index, int y, int x, int rows, int columns, int stride,
                                   Word* shared) {
  return stage_window(patches, window, index, y, x, rows, columns, ChunkCells(most_chunks(columns)), stride,
                      shared);
}

/// A whole reference between zeros that are there: row -1 is row 0 of the shared memory, `reference_pad`
/// bytes come first in a row; cells: for most_chunks(width). Returns the byte after the pad where the
/// reference begins: the bytes before it are left to clear_before_reference. Call wait_for_copies() before
/// the block synchronizes.
__device__ inline int stage_reference(const DevicePatches& patches, const PatchView<u8>& reference,
                                      std::int64_t index, const ChunkCells& cells, int stride, Word* shared) {
  if (!has_whole_chunks(patches, index)) {
    stage_words(reference, 0, -reference_pad, reference.y1, stride, stride, shared + stride);
    return 0;
  }
  const int offset = static_cast<int>(reinterpret_cast<std::uintptr_t>(reference.origin) % chunk_bytes);
  copy_rows(reference.origin - offset, static_cast<int>(reference.row_bytes), reference.y1, cells, stride,
            shared + stride + reference_pad / static_cast<int>(sizeof(Word)), offset + reference.x1);
  return offset;
}
/// Has these zeros written, up to row `last_row`. For whole blocks, which synchronize then.
__device__ inline void clear_reference(int last_row, int stride, Word* shared) {
  const int chunks = (last_row + 1) * stride / 4;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) reinterpret_cast<uint4*>(shared)[i] = {0, 0, 0, 0};
}
/// The same where the zeros are not there. For whole blocks.
__device__ inline int stage_reference(const DevicePatches& patches, const PatchView<u8>& reference,
                                      std::int64_t index, int last_row, int stride, Word* shared) {
  clear_reference(last_row, stride, shared);
  __syncthreads();
  return stage_reference(patches, reference, index, ChunkCells(most_chunks(reference.x1)), stride, shared);
}

}  // namespace dic::kernels

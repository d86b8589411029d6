#pragma once

#include "ncc/u8_shared.cuh"

/// Sums of a reference, and of the window under it for every shift of a block, from shared memory: exact in
/// unsigned 32 bits up to 257 x 257 elements.
///
/// The sums of the first row of shifts come from column sums; further down a row leaves the reference and a
/// row enters it, and what that changes is computed for every row at once (a thread slides along its two
/// rows) and added up by whoever walks down a column of shifts.
namespace dic::kernels {

struct alignas(8) WindowSum {
  Word sum, squares;

  __device__ void add(const WindowSum& other) {
    sum += other.sum;
    squares += other.squares;
  }
  __device__ void subtract(const WindowSum& other) {
    sum -= other.sum;
    squares -= other.squares;
  }
};
/// Those of two neighbouring columns.
struct alignas(16) WindowSumPair {
  WindowSum left, right;

  __device__ void add(const WindowSumPair& other) {
    left.add(other.left);
    right.add(other.right);
  }
};
/// In one piece, from an even element on.
__device__ inline WindowSumPair load_pair(const WindowSum* elements) {
  const uint4 pair = *reinterpret_cast<const uint4*>(elements);
  return {{pair.x, pair.y}, {pair.z, pair.w}};
}

/// a * b + c in one instruction.
__device__ inline std::int64_t multiply_add_wide(int a, int b, std::int64_t c) {
  std::int64_t sum;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
  return sum;
}

/// sum + the products of the bytes; `weights` are signed.
__device__ inline Word weigh(Word elements, Word weights, Word sum) {
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(elements), "r"(weights));
  return sum;
}
/// sum + the products of unsigned bytes.
__device__ inline Word dot(Word a, Word b, Word sum) { return __dp4a(a, b, sum); }

/// Adds to a cleared sum of the block. `shared`: the first row's first chunk; what surrounds a row in its
/// chunks is zero.
__device__ inline void sum_reference(const Word* shared, int stride, int rows, int chunks,
                                     WindowSum* of_block) {
  Word sum = 0, squares = 0;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const auto* const chunk = reinterpret_cast<const uint4*>(shared + row * stride);
#pragma unroll 2
    for (int i = 0; i < chunks; ++i) {
      const uint4 words = chunk[i];
      for (const Word word : {words.x, words.y, words.z, words.w}) {
        sum = dot(word, 0x01010101u, sum);
        squares = dot(word, word, squares);
      }
    }
  }
  constexpr unsigned all = 0xffffffffu;
  sum = __reduce_add_sync(all, sum);
  squares = __reduce_add_sync(all, squares);
  if (threadIdx.x % warp_size == 0) {
    atomicAdd(&of_block->sum, sum);
    atomicAdd(&of_block->squares, squares);
  }
}

/// A window in shared memory, rows of words or turned around: then neighbouring rows are neighbouring words,
/// and lanes that read a word of a row each do not meet in banks.
template <bool turned>
struct WindowView {
  static constexpr int turned_rows = 64, turned_words = 20, turned_pitch = turned_rows + 4;
  static constexpr int size_turned = (turned_words + 2) * turned_pitch;  ///< with what streams load ahead
  static constexpr int word_step = turned ? turned_pitch : 1;
  const Word* words;
  int stride;

  __device__ const Word* row(int y) const { return words + y * (turned ? 1 : stride); }
  /// Word x of the rows y .. y + 3, y being a multiple of 4.
  __device__ uint4 four_rows(int y, int x) const {
    const Word* const at = row(y) + x * word_step;
    if constexpr (turned)
      return *reinterpret_cast<const uint4*>(at);
    else
      return {at[0], at[stride], at[2 * stride], at[3 * stride]};
  }
};
/// Turns a window of a block of one warp around in its place.
__device__ inline WindowView<true> turn_window(Word* window, int stride) {
  using View = WindowView<true>;
  constexpr int chunks = View::turned_words / 4;
  uint4 rows[2][chunks];
  const int lane = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 2 * chunks; ++i)
    rows[i / chunks][i % chunks] =
        *reinterpret_cast<const uint4*>(window + (lane + i / chunks * warp_size) * stride + i % chunks * 4);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 2 * chunks; ++i) {
    Word* const at = window + i % chunks * 4 * View::turned_pitch + lane + i / chunks * warp_size;
    const uint4 chunk = rows[i / chunks][i % chunks];
    at[0] = chunk.x;
    at[View::turned_pitch] = chunk.y;
    at[2 * View::turned_pitch] = chunk.z;
    at[3 * View::turned_pitch] = chunk.w;
  }
  __syncwarp();
  return {window, stride};
}

/// out[k] = (a[k], b[k], c[k], d[k]).
__device__ inline void transpose_bytes(Word a, Word b, Word c, Word d, Word (&out)[4]) {
  const Word ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const Word cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  out[0] = __byte_perm(ab_low, cd_low, 0x5410);
  out[1] = __byte_perm(ab_low, cd_low, 0x7632);
  out[2] = __byte_perm(ab_high, cd_high, 0x5410);
  out[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

/// Sizes of two tables: changes[row][x] for the step from shift row to row + 1, and column sums.
struct WindowSumsLayout {
  int words = 0;   ///< of 4 columns x
  int stride = 0;  ///< of a row of changes, in elements; a pair of them is an odd number of 16 bytes away
  int rows = 0;    ///< of changes; lanes without a shift read one more
  int column_words = 0;  ///< of 4 column sums

  WindowSumsLayout() = default;
  WindowSumsLayout(int shifts_x, int steps, int width)
      : words((shifts_x + 3) / 4),
        stride(4 * words + 2),
        rows(steps),
        column_words((shifts_x + width - 1 + 3 + 3) / 4) {}
  __host__ __device__ int changes() const { return rows * stride; }
  /// The last pair of columns x.
  __device__ int last_pair() const { return 4 * words - 2; }
  /// At least as many as a row of changes has, which precede them.
  __host__ __device__ int columns() const { return 4 * column_words + 4; }
};

__device__ inline void clear_columns(const WindowSumsLayout& layout, WindowSum* columns) {
  for (int i = threadIdx.x; i < layout.columns(); i += blockDim.x) columns[i] = {0, 0};
}
/// Adds to cleared column sums those over the first `height` rows of a window that begins at byte `first` of
/// its rows.
template <bool turned>
__device__ void sum_columns(const WindowSumsLayout& layout, const WindowView<turned>& window, int first,
                            int height, WindowSum* columns) {
  const Cells cells(layout.column_words);
  for (int word = cells.column(); word < layout.column_words; word += cells.columns_at_once()) {
    WindowSum sums[4] = {};
    for (int row = 4 * cells.row(); row < height; row += 4 * cells.rows_at_once()) {
      Word of_column[4];
      const uint4 rows = window.four_rows(row, first / 4 + word);
      transpose_bytes(rows.x, rows.y, rows.z, rows.w, of_column);
      const Word exist = low_bytes(height - row);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Word elements = of_column[i] & exist;
        sums[i].sum = dot(elements, 0x01010101u, sums[i].sum);
        sums[i].squares = dot(elements, elements, sums[i].squares);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (const int column = 4 * word + i - first % 4; column >= 0) {
        atomicAdd(&columns[column].sum, sums[i].sum);
        atomicAdd(&columns[column].squares, sums[i].squares);
      }
    }
  }
  __syncwarp();  // lanes without a word have gone ahead
}

/// Reads a row from any byte on, four elements at a time; its words are word_step apart. Loads a word ahead.
template <int word_step = 1>
class ByteStream {
 public:
  __device__ ByteStream(const Word* row, int byte)
      : at_(row + byte / 4 * word_step), shift_(8 * (byte % 4)), last_(*at_), ahead_(at_[word_step]) {}
  __device__ Word next() {
    const Word word = __funnelshift_r(last_, ahead_, shift_);
    last_ = ahead_;
    at_ += word_step;
    ahead_ = at_[word_step];
    return word;
  }

 private:
  const Word* at_;
  int shift_;
  Word last_, ahead_;
};

/// out[x] = the sums over `width` elements from first + x on of the row that enters, less those of the row
/// that leaves, for words begin .. end - 1 of x.
template <int word_step>
__device__ void slide(const Word* leaving, const Word* entering, int first, int width, int begin, int end,
                      WindowSum* out) {
  first += 4 * begin;
  WindowSum change{0, 0};
  {
    ByteStream<word_step> in(entering, first), gone(leaving, first);
    Word squares_gone = 0;
    const auto add = [&](Word exist) {
      const Word elements = in.next() & exist, elements_gone = gone.next() & exist;
      change.sum = weigh(elements_gone, 0xffffffffu, dot(elements, 0x01010101u, change.sum));
      change.squares = dot(elements, elements, change.squares);
      squares_gone = dot(elements_gone, elements_gone, squares_gone);
    };
#pragma unroll 2
    for (int i = 0; i < width / 4; ++i) add(0xffffffffu);
    add(low_bytes(width % 4));
    change.squares -= squares_gone;
  }
  // Where elements e count negative, e * (255 - e) is added to the squares, and 255 * e too much.
  Word negative = 0;
  ByteStream<word_step> left_in(entering, first), right_in(entering, first + width);
  ByteStream<word_step> left_gone(leaving, first), right_gone(leaving, first + width);
#pragma unroll 2
  for (int word = begin; word < end; ++word) {
    Word steps[4];  // what enters and leaves the sum over the row that enters, and over the row that leaves
    transpose_bytes(right_in.next(), left_in.next(), right_gone.next(), left_gone.next(), steps);
    WindowSum of_word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      of_word[i] = {change.sum, change.squares - 255 * negative};
      change.sum = weigh(steps[i], 0x01ffff01u, change.sum);
      change.squares = dot(steps[i], steps[i] ^ 0x00ffff00u, change.squares);
      negative = dot(steps[i], 0x00010100u, negative);
    }
    auto* const stored = reinterpret_cast<WindowSumPair*>(out + 4 * word);
    stored[0] = {of_word[0], of_word[1]};
    stored[1] = {of_word[2], of_word[3]};
  }
}

/// The first `rows` rows of changes. A thread does a row, or a part of it where there are threads to spare.
template <bool turned>
__device__ void sum_changes(const WindowSumsLayout& layout, const WindowView<turned>& window, int first,
                            int height, int width, int rows, WindowSum* changes) {
  const int threads = static_cast<int>(blockDim.x);
  const int threads_per_part = min(round_up(max(rows, 1), warp_size), threads);
  const int words = (layout.words * threads_per_part + threads - 1) / threads;  // of a part
  const int begin = threadIdx.x / threads_per_part * words;
  for (int row = threadIdx.x % threads_per_part; row < rows; row += threads_per_part)
    slide<window.word_step>(window.row(row), window.row(row + height), first, width, begin,
                            min(begin + words, layout.words), changes + row * layout.stride);
}

}  // namespace dic::kernels

#include <cuda_fp16.h>

#include "ncc/tensor/wide_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int most_bits =
    12;  ///< differences from the middle of the range then fit into the 11 bits of a half float

/// Two elements less the middle of the range, as multiples of 2^-24, which are the bits of the difference,
/// read as a half float.
__device__ inline __half2 less_middle(Word elements, int middle) {
  const Word middle_bits = static_cast<Word>(middle) * 0x10001u, below_bits = middle_bits - 0x10001u;
  const Word above = elements & below_bits, below = ~elements & middle_bits;
  return __hsub2(reinterpret_cast<const __half2&>(above), reinterpret_cast<const __half2&>(below));
}
__device__ inline Word bits_of(__half2 value) { return reinterpret_cast<const Word&>(value); }

/// Images of up to 12 bit as half floats, for zncc. Operands are exact: elements of the window less the
/// middle of the range, elements of the reference less a value close to their mean, so that the rounding of
/// f32 sums is small compared with the covariance. All are multiples of 2^-24.
struct HalfMethod : WithStatistics<HalfMethod> {
  static constexpr std::string_view name = "cuda-f16-tensor";
  using Products = HalfProducts;
  static constexpr bool converts = true;
  static constexpr int most_warps = 4, most_tiles = 8, tasks_per_block = 4;
  static constexpr WideShape shapes[]{
      WideShape{.tiles = 8, .stride = 36, .reference_stride = 20, .alone = true},
      WideShape{8, false, 52, 36, true},
      WideShape{8, false, 68, 36, true},
      WideShape{.tiles = 9, .tail = true, .stride = 36, .reference_stride = 20, .alone = true},
      WideShape{9, true, 52, 36, true},
      WideShape{2, false, 0, 0, true},
      WideShape{4, false, 0, 0, true},
      WideShape{6, false, 0, 0, true},
      WideShape{8, false, 0, 0, true}};
  /// Number of blocks whose data (about 12 warps) fits into shared memory.
  __host__ __device__ static constexpr int least_blocks(const WideShape& shape) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    return shape.tiles < 8 ? 3 : 2;
#else
    return shape.tiles < 8 ? 4 : 3;
#endif
  }

  struct ReferenceSums {
    WideReferenceSums of;
    Word most, least;  ///< largest and smallest element

    __device__ void add(const ReferenceSums& other) {
      of.add(other.of);
      most = max(most, other.most);
      least = min(least, other.least);
    }
  };

  /// Pairs in a row. A lane reads from 4 elements before the first one on; the last elements of the row
  /// before are zero.
  static int reference_pairs(int copied, int k_words, int width) {
    return std::max({copied, k_words + 2, (width + 8 + 7) / 8 * 4});
  }
  /// Places two copies of the reference, half the banks apart; scores later overwrite them. The window lies
  /// before them, so that reads beyond its rows find operands or zeros, which are finite.
  static void lay_out(const NccJob& job, WideTiling& tiling) {
    const int stride = tiling.k.reference_stride, h = job.reference.height;
    const int window_rows = h + std::min(tiling.rows(), job.shifts.ny()) - 1;
    const int rows_of_tail = tiling.warp.has_corner() ? round_up(h, tail_rows) + warp_size + 1 : 0;
    tiling.operand_chunks = Divisor(stride * 4 / chunk_bytes);
    tiling.operands_at = tiling.tile_at = window_rows * tiling.k.window_stride;
    tiling.copy_at = (tiling.k.rows + 1) * stride;
    while (tiling.copy_at % 32 != 16) tiling.copy_at += 4;
    tiling.staged_at = std::max({tiling.operands_at + 2 * (tiling.copy_at + zeros_around),
                                 tiling.operands_at + tiling.tile_words, tiling.window_words,
                                 rows_of_tail * tiling.k.window_stride});
    tiling.words = tiling.staged_at + h * stride;
  }

  static int origin(const NccJob& job) { return 1 << (job.bit_depth - 1); }
  __device__ static void clear(const WideTiling&, int, const WideMemory&) {}

  /// Sums the reference and returns the sums of the warp.
  template <bool with_sums>
  __device__ static ReferenceSums sum_reference(const ReferenceChunks& chunks,
                                                const StagedReference& reference, int stride,
                                                const WideMemory& memory) {
    Word sum = 0, low = 0, high = 0, most = 0, least = ~0u;
    chunks.visit(reference.height, stride, [&](int at) {
      const uint4 raw = reinterpret_cast<const uint4&>(memory.staged[at]);
      const Word words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Word mask = chunks.masks[i], elements = words[i] & mask;
        add_elements(elements, sum, low, high);
        most = __vmaxu2(most, elements);
        least = __vminu2(least, elements | ~mask);
      }
    });
    return {WideReferenceSums::over_warp(sum, low + (std::uint64_t{high} << 8)),
            __reduce_max_sync(all_lanes, max(most & 0xffffu, most >> 16)),
            __reduce_min_sync(all_lanes, min(least & 0xffffu, least >> 16))};
  }

  /// Converts the window. Words that were not copied become finite, too: they are multiplied with zeros.
  __device__ static void convert_window(const WideTiling& tiling, const WideMemory& memory, int middle) {
    const auto convert = [=](Word& elements) { elements = bits_of(less_middle(elements, middle)); };
    const auto convert_chunks = [&]<int at_once>(uint4* chunks) {  // all loads before the first store
      uint4 chunk[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) chunk[i] = chunks[i * blockDim.x];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        convert(chunk[i].x), convert(chunk[i].y), convert(chunk[i].z), convert(chunk[i].w);
        chunks[i * blockDim.x] = chunk[i];
      }
    };
    constexpr int at_once = 4;
    const int count = tiling.operands_at / 4, threads = static_cast<int>(blockDim.x);
    auto* const window = reinterpret_cast<uint4*>(memory.window);
    int i = thread_of_block();
    for (; i + (at_once - 1) * threads < count; i += at_once * threads)
      convert_chunks.template operator()<at_once>(window + i);
    for (; i < count; i += threads) convert_chunks.template operator()<1>(window + i);
  }

  __device__ static void convert_reference(const WideTiling& tiling, const ReferenceChunks& chunks,
                                           const StagedReference& reference, int stride,
                                           const WideMemory& memory, const ReferenceSums& sums, int middle) {
    clear_around(tiling, reference, stride, memory.operands);
    const int n = reference.height * reference.width;
    const __half2 further = __float2half2_rn(0x1p-24f * (origin_of(n, sums) - middle));
    const auto convert = [&](Word elements, Word mask) {
      return bits_of(__hsub2(less_middle(elements, middle), further)) & mask;
    };
    const int column = chunks.column;
    const Word mask_before = column > 0 ? reference.mask(4 * column - 1) : 0;
    Word* const target = memory.operands + zeros_around + stride;
    chunks.visit(reference.height, stride, [&](int at) {
      const uint4 raw = reinterpret_cast<const uint4&>(memory.staged[at]);
      const Word before = convert(memory.staged[column > 0 ? at - 1 : at], mask_before);
      const uint4 even{convert(raw.x, chunks.masks[0]), convert(raw.y, chunks.masks[1]),
                       convert(raw.z, chunks.masks[2]), convert(raw.w, chunks.masks[3])};
      const auto shifted = [](Word left, Word right) { return __funnelshift_r(left, right, 16); };
      reinterpret_cast<uint4&>(target[at]) = even;
      reinterpret_cast<uint4&>(target[tiling.copy_at + at]) = {
          shifted(before, even.x), shifted(even.x, even.y), shifted(even.y, even.z), shifted(even.z, even.w)};
    });
  }

  __device__ static WideLaneStart<Word> reference_of_lane(const WideTiling& tiling,
                                                          const StagedReference& reference,
                                                          const WideMemory& memory, int row, int shift) {
    const int at = reference.first - shift, copy = at & 1;
    return {.reference = memory.operands + zeros_around + copy * tiling.copy_at +
                         (1 + row) * tiling.k.reference_stride + (at + copy) / 2};
  }

  /// Operands of the tail. The row below the reference is zero.
  template <WideShape shape>
  struct TailOperands {
    static constexpr int words_per_step = 8;
    int words, height, group;
    const Word *lane_window, *lane_reference;

    __device__ TailOperands(const WideTiling& tiling, const StagedReference& reference,
                            const WideMemory& memory, const WarpPlace&, int window_at)
        : height(reference.height) {
      const int lane = threadIdx.x % warp_size, shift = window_at % 2, word = lane % 4;
      group = lane / 4;
      words = (reference.width + shift + 7) / 8 * 4;
      lane_window = memory.window + group * shape.stride + (window_at + columns_per_warp) / 2 + word;
      lane_reference = reference_of_lane(tiling, reference, memory, 0, shift).reference + word;
    }
    __device__ void load(int row, int q, Products::Patch& patch) const {
      const Word* const at = lane_reference + min(row + group, height) * shape.reference_stride + q;
      patch[0] = at[0], patch[1] = q + half_step < words ? at[half_step] : 0;
    }
    __device__ void load(int row, int q, Products::Quad& quad) const {
      const Word* const at = lane_window + row * shape.stride + q;
      quad[0] = at[0], quad[1] = at[8 * shape.stride];
      quad[2] = at[half_step], quad[3] = at[8 * shape.stride + half_step];
    }

   private:
    static constexpr int half_step = words_per_step / 2;
  };

  template <typename Body>
  __device__ static void visit_criterion(Criterion, Body&& body) {
    body.template operator()<Criterion::zncc>();
  }

  template <Criterion criterion>
  struct Reference {
    int sum_of_origins;  ///< sum of the origins over the window
    float products_scale, sum;
    float weight;  ///< inverse root of the reference's variation; NaN = no contrast

    __device__ Reference(int n, const ReferenceSums& sums, int origin_of_window)
        : sum_of_origins(n * origin_of_window),
          products_scale(0x1p48f * n),
          sum(static_cast<int>(sums.of.sum) - n * origin_of(n, sums)) {
      const auto variation =
          static_cast<std::int64_t>(n * sums.of.squares() - std::uint64_t{sums.of.sum} * sums.of.sum);
      weight = variation > 0 ? inverse_root(static_cast<float>(variation)) : no_score;
    }

    /// Score of a shift. `weight`: weight of the reference, or no_score.
    __device__ float score(float product, const WindowStatistics& window, float weight) const {
      const auto window_sum = static_cast<float>(static_cast<int>(window.sum()) - sum_of_origins);
      const float covariance = products_scale * product - sum * window_sum;
      return covariance * (weight * window.inverse_root());
    }
  };

 private:
  static constexpr int zeros_around = 8;  ///< words that lanes read before the first row and after the last

  /// The value nearest to the mean for which all differences fit into the 11 bits of a half.
  __device__ static int origin_of(int n, const ReferenceSums& sums) {
    constexpr int reach = 2048;
    const int mean = __float2int_rn(__fdividef(sums.of.sum, n));
    return max(min(mean, static_cast<int>(sums.least) + reach), static_cast<int>(sums.most) - reach);
  }

  /// Clears the rows around both copies of the reference.
  __device__ static void clear_around(const WideTiling& tiling, const StagedReference& reference, int stride,
                                      Word* operands) {
    const auto clear = [&](int from, int to) {
      for (int i = from + 4 * thread_of_block(); i < to; i += 4 * blockDim.x)
        reinterpret_cast<uint4&>(operands[i]) = {0, 0, 0, 0};
    };
    const int first = zeros_around + stride, after = first + reference.height * stride;
    clear(0, first);
    clear(after, tiling.copy_at + first);
    clear(tiling.copy_at + after, tiling.staged_at - tiling.operands_at);
  }
};

}  // namespace

std::string F16Tensor::unsupported_reason(const NccJob& job) {
  if (job.bit_depth < 1 || job.bit_depth > most_bits)
    return "cuda-f16-tensor takes images of at most 12 bit.";
  if (job.shifts.count() > 0 && !wide_scores_fit<HalfMethod>(job, FusedOutput::scores))
    return "cuda-f16-tensor does references up to about 181x181.";
  return {};
}

int F16Tensor::shared_bytes(const NccJob& job) {
  return choose_wide_tiling<HalfMethod>(job, true).shared_bytes();
}

bool F16Tensor::fits(const NccJob& job, FusedOutput fused) { return wide_scores_fit<HalfMethod>(job, fused); }

void F16Tensor::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream) {
  launch_wide_scores<HalfMethod>(job, criterion, kind, scores, workspace, stream);
}

void F16Tensor::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream) {
  launch_wide_peaks<HalfMethod>(job, criterion, peaks, workspace, stream);
}

}  // namespace dic::kernels

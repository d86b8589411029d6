#include "ncc/tensor/wide_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Any 16-bit elements, exact. Covariances are computed modulo 2^64: for up to 92,681 elements n sum(a b) -
/// sum(a) sum(b) stays below 2^63.
struct ExactMethod : WithStatistics<ExactMethod> {
  static constexpr std::string_view name = "cuda-u16-tensor";
  using Products = ExactProducts;
  using ReferenceSums = WideReferenceSums;
  static constexpr bool converts = false;
  static constexpr int most_warps = 8, most_tiles = 4, tasks_per_block = 2;
  static constexpr WideShape shapes[]{
      WideShape{4, false, 44, 28}, WideShape{4, false, 76, 44}, WideShape{3, true, 44, 28},
      WideShape{3, true, 52, 44},  WideShape{1, false},         WideShape{2, false},
      WideShape{3, false},         WideShape{3, true},          WideShape{4, false}};
  __host__ __device__ static constexpr int least_blocks(const WideShape&) { return 2; }

  /// Pairs in a row, with zeros before and after it.
  static int reference_pairs(int copied, int k_words, int /*width*/) {
    return reference_pad / 4 + std::max(copied, k_words + 4);
  }
  /// Places the operands of the reference: its elements, as they were copied.
  static void lay_out(const NccJob&, WideTiling& tiling) {
    tiling.operand_chunks = tiling.reference_chunks;
    tiling.staged_at = tiling.k.reference_stride + reference_pad / 4;
    tiling.tile_at = (tiling.k.rows + 1) * tiling.k.reference_stride;
    tiling.window_at = tiling.tile_at + tiling.tile_words;
    tiling.words = tiling.window_at + tiling.window_words;
  }

  static int origin(const NccJob&) { return 0; }
  /// Zeroes the memory around the reference.
  __device__ static void clear(const WideTiling& tiling, int reference_stride, const WideMemory& memory) {
    clear_rows(tiling.k.rows, reference_stride, memory.operands);
  }

  /// Zeroes the elements of the image to the left of the reference. Returns the sums of the warp.
  template <bool with_sums>
  __device__ static ReferenceSums sum_reference(const ReferenceChunks& chunks,
                                                const StagedReference& reference, int stride,
                                                const WideMemory& memory) {
    Word sum = 0;
    std::uint64_t squares = 0;
    chunks.visit(reference.height, stride, [&](int at) {
      auto& chunk = reinterpret_cast<uint4&>(memory.staged[at]);
      const uint4 raw = chunk;
      const uint4 words{raw.x & chunks.masks[0], raw.y & chunks.masks[1], raw.z & chunks.masks[2],
                        raw.w & chunks.masks[3]};
      if (chunks.column == 0) chunk = words;
      if constexpr (!with_sums) return;
      Word low = 0, high = 0;
      for (const Word word : {words.x, words.y, words.z, words.w}) add_elements(word, sum, low, high);
      squares += low + (std::uint64_t{high} << 8);
    });
    return ReferenceSums::over_warp(sum, squares);
  }

  __device__ static WideLaneStart<Word> reference_of_lane(const WideTiling& tiling,
                                                          const StagedReference& reference,
                                                          const WideMemory& memory, int row, int shift) {
    const int at = reference_pad / 2 + reference.first - shift;
    return {.reference = memory.operands + (1 + row) * tiling.k.reference_stride + at / 2,
            .bit_shift = 16 * (at % 2)};
  }

  /// Operands of the tail. Both are shifted, so that a step takes 32 elements of a row. Zeros follow a row of
  /// the reference.
  template <WideShape shape>
  struct TailOperands {
    static constexpr int words_per_step = 16;
    int words, height, group, word, window_stride, reference_stride, bit_shift;
    const Word* lane_window;
    WideLaneStart<Word> lane_reference;

    __device__ TailOperands(const WideTiling& tiling, const StagedReference& reference,
                            const WideMemory& memory, const WarpPlace& place, int window_at)
        : words((reference.width + 1) / 2),
          height(reference.height),
          window_stride(shape.stride > 0 ? shape.stride : tiling.k.window_stride),
          reference_stride(shape.stride > 0 ? shape.reference_stride : tiling.k.reference_stride),
          bit_shift(16 * (window_at % 2)),
          lane_reference(reference_of_lane(tiling, reference, memory, 0, 0)) {
      const int lane = threadIdx.x % warp_size;
      group = lane / 4, word = 2 * (lane % 4);
      lane_window = memory.window + (place.first_row + group) * window_stride +
                    (window_at + columns_per_warp) / 2 + word;
    }
    __device__ void load(int row, int q, Products::Patch& patch) const {
      const Word* const row_words = lane_reference.reference + min(row + group, height) * reference_stride;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Word* const at = row_words + min(q + half_step * i + word, words);
        patch.put(i, {at[0], at[1], at[2]}, lane_reference.bit_shift);
      }
    }
    __device__ void load(int row, int q, Products::Quad& quad) const {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Word* const at = lane_window + (row + i % 2 * 8) * window_stride + q + i / 2 * half_step;
        quad.put(i, {__funnelshift_r(at[0], at[1], bit_shift), __funnelshift_r(at[1], at[2], bit_shift)});
      }
    }

   private:
    static constexpr int half_step = words_per_step / 2;
  };

  template <typename Body>
  __device__ static void visit_criterion(Criterion criterion, Body&& body) {
    kernels::visit_criterion(criterion, body);
  }

  template <Criterion criterion>
  struct Reference {
    std::uint64_t n;
    ReferenceSums sums;
    float weight;  ///< inverse root of the reference's variation; no_score without contrast, 1 for ssd

    __device__ Reference(int elements, const ReferenceSums& element_sums, int)
        : n(elements), sums(element_sums) {
      const float variation = criterion == Criterion::zncc ? centred(sums.squares(), sums.sum, sums.sum)
                                                           : static_cast<float>(sums.squares());
      weight = criterion == Criterion::ssd ? 1.0f : variation > 0 ? inverse_root(variation) : no_score;
    }

    /// Score of a shift. `weight`: weight of the reference, or no_score.
    __device__ float score(std::uint64_t product, const WindowStatistics& window, float weight) const {
      if constexpr (criterion == Criterion::zncc)
        return centred(product, sums.sum, window.sum()) * (weight * window.inverse_root());
      if constexpr (criterion == Criterion::ncc)
        return static_cast<float>(product) * (weight * window.inverse_root());
      return -weight * static_cast<float>(sums.squares() + window.squares() - 2 * product);
    }

   private:
    __device__ float centred(std::uint64_t product, Word sum_a, Word sum_b) const {
      return static_cast<float>(static_cast<std::int64_t>(n * product - std::uint64_t{sum_a} * sum_b));
    }
  };
};

}  // namespace

std::string U16Tensor::unsupported_reason(const NccJob& job) {
  const bool exact = std::int64_t{job.reference.height} * job.reference.width <= ExactProducts::most_elements;
  const bool fit =
      job.shifts.count() == 0 || (wide_scores_fit<ExactMethod>(job, FusedOutput::scores) &&
                                  dic::kernels::fits(choose_wide_tiling<ExactMethod>(job, false)));
  if (!exact || !fit) return "cuda-u16-tensor does references up to about 181x181.";
  return {};
}

int U16Tensor::shared_bytes(const NccJob& job) {
  return choose_wide_tiling<ExactMethod>(job, true).shared_bytes();
}

bool U16Tensor::fits(const NccJob& job, FusedOutput fused) {
  return wide_scores_fit<ExactMethod>(job, fused);
}

void U16Tensor::launch_sums(const NccJob& job, void* out, Workspace&, StreamHandle stream) {
  launch_wide<ExactMethod, WideResult::sums>(job, {}, {.sums = static_cast<std::uint64_t*>(out)}, stream);
}

void U16Tensor::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream) {
  launch_wide_scores<ExactMethod>(job, criterion, kind, scores, workspace, stream);
}

void U16Tensor::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                             StreamHandle stream) {
  launch_wide_peaks<ExactMethod>(job, criterion, peaks, workspace, stream);
}

}  // namespace dic::kernels

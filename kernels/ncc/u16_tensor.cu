#include "ncc/u16_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Any 16-bit elements, exact. What a score is made of is computed modulo 2^64: for up to 92,681 elements
/// n sum(a b) - sum(a) sum(b) stays below 2^63.
struct ExactMethod {
  static constexpr std::string_view name = "cuda-u16-tensor";
  using Products = ExactProducts;
  static constexpr bool converts_window = false;
  static constexpr std::array shapes{WarpShape16{3, true}, WarpShape16{1, false}, WarpShape16{2, false},
                                     WarpShape16{3, false}, WarpShape16{4, false}};
  struct ReferenceSums {
    Word sum;
    std::uint64_t squares;
  };

  static int origin(const NccJob&) { return 0; }

  __device__ static void sum_reference(const StagedReference& reference, ReferenceSums& out) {
    ReferenceSums sums{0, 0};
    reference.for_each_word(threadIdx.x, warp_size, [&](Word elements, Word mask) {
      for (const Word e : {elements & mask & 0xffffu, (elements & mask) >> 16}) {
        sums.sum += e;
        sums.squares += e * e;
      }
    });
    sums = {warp_sum(sums.sum), warp_sum(sums.squares)};
    if (threadIdx.x == 0) out = sums;
  }

  /// What an odd element shares its word with becomes zero.
  __device__ static void to_operands(const StagedReference& reference, const ReferenceSums&, uint4*, int,
                                     int) {
    if (reference.first % 2 == 0) return;
    for (int row = threadIdx.x + 1; row <= reference.height; row += blockDim.x)
      reference.words[row * reference.stride + reference.first / 2] &= 0xffff0000u;
  }

  template <typename Body>
  __device__ static void visit_measure(Measure measure, Body&& body) {
    kernels::visit_measure(measure, body);
  }

  template <Measure measure>
  struct Reference {
    std::uint64_t n;
    ReferenceSums sums;
    float scale;  ///< inverse root of its variation; NaN = no contrast

    __device__ Reference(int elements, const ReferenceSums& of_elements, int)
        : n(elements), sums(of_elements) {
      const float variation = measure == Measure::zncc ? centred(sums.squares, sums.sum, sums.sum)
                                                       : static_cast<float>(sums.squares);
      scale = variation > 0 ? inverse_root(variation) : no_score;
    }

    __device__ float score(std::uint64_t product, const WindowStatistics& window) const {
      if constexpr (measure == Measure::zncc)
        return centred(product, sums.sum, window.sum()) * (scale * window.inverse_root());
      if constexpr (measure == Measure::ncc)
        return static_cast<float>(product) * (scale * window.inverse_root());
      return -static_cast<float>(sums.squares + window.squares() - 2 * product);
    }

   private:
    __device__ float centred(std::uint64_t product, Word sum_a, Word sum_b) const {
      return static_cast<float>(static_cast<std::int64_t>(n * product - std::uint64_t{sum_a} * sum_b));
    }
  };
};

}  // namespace

std::string refuses_u16_tensor(const NccJob& job) {
  const bool exact = std::int64_t{job.reference.height} * job.reference.width <= ExactProducts::most_elements;
  const bool fit = job.shifts.count() == 0 || (scores_fit16<ExactMethod>(job, false) &&
                                               fits(job, choose_cut16<ExactMethod>(job, false)));
  if (!exact || !fit) return "cuda-u16-tensor does references up to about 181x181.";
  return {};
}

int u16_tensor_shared_bytes(const NccJob& job) { return choose_cut16<ExactMethod>(job, true).shared_bytes(); }

bool u16_tensor_scores_fit(const NccJob& job, bool peaks) { return scores_fit16<ExactMethod>(job, peaks); }

void launch_u16_tensor(const NccJob& job, void* out, StreamHandle stream) {
  launch_tensor16<ExactMethod, false>(job, {}, {.sums = static_cast<std::uint64_t*>(out)}, stream);
}

void launch_u16_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream) {
  launch_scores16<ExactMethod>(job, measure, kind, scores, workspace, stream);
}

void launch_u16_tensor_peaks(const NccJob& job, Measure measure, Peak* peaks, Workspace& workspace,
                             StreamHandle stream) {
  launch_peaks16<ExactMethod>(job, measure, peaks, workspace, stream);
}

}  // namespace dic::kernels

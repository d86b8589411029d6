#include <cuda_fp16.h>

#include "ncc/u16_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

constexpr int most_bits =
    12;  ///< differences from the middle of the range then fit the 11 bits of a half float

/// Pictures of up to 12 bit as half floats, for zncc. Operands are exact: elements of the window less the
/// middle of the range, those of the reference less a value close to their mean, so that what the f32 sums
/// round away is small beside the covariance.
struct HalfMethod {
  static constexpr std::string_view name = "cuda-f16-tensor";
  using Products = HalfProducts;
  static constexpr bool converts_window = true;
  static constexpr std::array shapes{WarpShape16{5, true}, WarpShape16{2, false}, WarpShape16{4, false},
                                     WarpShape16{6, false}, WarpShape16{8, false}};
  struct ReferenceSums {
    int sum;  ///< of the operands
    std::int64_t variation;
    int origin;
  };

  static int origin(const NccJob& job) { return 1 << (job.bit_depth - 1); }

  /// Window elements become multiples of 2^-24: those are the bits of the difference from the middle of the
  /// range, read as a half float. What was not copied becomes finite.
  __device__ static void to_operands(const StagedReference& reference, const ReferenceSums& sums,
                                     uint4* window, int words, int middle) {
    const Word middle_bits = static_cast<Word>(middle) * 0x10001u, below_bits = middle_bits - 0x10001u;
    const auto to_halves = [=](Word& elements) {
      asm("sub.f16x2 %0, %1, %2;"
          : "=r"(elements)
          : "r"(elements & below_bits), "r"(~elements & middle_bits));
    };
    constexpr int at_once = 4;  // loads in flight: stores to the same memory keep the compiler from it
    const int chunks = words / 4, threads = static_cast<int>(blockDim.x);
    for (int first = threadIdx.x; first < chunks; first += at_once * threads) {
      uint4 chunk[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (first + i * threads < chunks) chunk[i] = window[first + i * threads];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (first + i * threads >= chunks) break;
        to_halves(chunk[i].x), to_halves(chunk[i].y), to_halves(chunk[i].z), to_halves(chunk[i].w);
        window[first + i * threads] = chunk[i];
      }
    }
    const int origin = sums.origin;
    reference.for_each_word(threadIdx.x, blockDim.x, [=](Word& elements, Word mask) {
      const auto operand = [&](Word element) {
        return static_cast<float>(static_cast<int>(element) - origin);
      };
      const __half2 halves = __floats2half2_rn(operand(elements & 0xffffu), operand(elements >> 16));
      elements = reinterpret_cast<const Word&>(halves) & mask;
    });
  }

  /// The origin is as close to the mean as it can be with all differences within the 11 bits of a half.
  __device__ static void sum_reference(const StagedReference& reference, ReferenceSums& out) {
    Word sum = 0, highest = 0, lowest = ~0u;
    std::uint64_t squares = 0;
    reference.for_each_word(threadIdx.x, warp_size, [&](Word elements, Word mask) {
      elements &= mask;
      highest = __vmaxu2(highest, elements);
      lowest = __vminu2(lowest, elements | ~mask);
      for (const Word e : {elements & 0xffffu, elements >> 16}) {
        sum += e;
        squares += e * e;
      }
    });
    sum = warp_sum(sum), squares = warp_sum(squares);
    constexpr unsigned all = 0xffffffffu;
    const auto most = static_cast<int>(__reduce_max_sync(all, max(highest & 0xffffu, highest >> 16)));
    const auto least = static_cast<int>(__reduce_min_sync(all, min(lowest & 0xffffu, lowest >> 16)));
    const int n = reference.height * reference.width, mean = (sum + n / 2) / n;
    constexpr int reach = 2048;
    const int origin = max(min(mean, least + reach), most - reach);
    if (threadIdx.x == 0)
      out = {static_cast<int>(sum) - n * origin,
             static_cast<std::int64_t>(n * squares - std::uint64_t{sum} * sum), origin};
  }

  template <typename Body>
  __device__ static void visit_measure(Measure, Body&& body) {
    body.template operator()<Measure::zncc>();
  }

  template <Measure measure>
  struct Reference {
    int sum_of_origins;  ///< of the window
    float products_scale, sum;
    float scale;  ///< inverse root of its variation; NaN = no contrast

    __device__ Reference(int n, const ReferenceSums& sums, int origin_of_window)
        : sum_of_origins(n * origin_of_window),
          products_scale(static_cast<float>(n) * (1 << 24)),
          sum(static_cast<float>(sums.sum)) {
      scale = sums.variation > 0 ? inverse_root(static_cast<float>(sums.variation)) : no_score;
    }

    __device__ float score(float product, const WindowStatistics& window) const {
      const auto window_sum = static_cast<float>(static_cast<int>(window.sum()) - sum_of_origins);
      const float covariance = products_scale * product - sum * window_sum;
      return covariance * (scale * window.inverse_root());
    }
  };
};

}  // namespace

std::string refuses_f16_tensor(const NccJob& job) {
  if (job.bit_depth < 1 || job.bit_depth > most_bits)
    return "cuda-f16-tensor takes pictures of at most 12 bit.";
  if (job.shifts.count() > 0 && !scores_fit16<HalfMethod>(job, false))
    return "cuda-f16-tensor does references up to about 181x181.";
  return {};
}

int f16_tensor_shared_bytes(const NccJob& job) { return choose_cut16<HalfMethod>(job, true).shared_bytes(); }

bool f16_tensor_scores_fit(const NccJob& job, bool peaks) { return scores_fit16<HalfMethod>(job, peaks); }

void launch_f16_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, float* scores,
                              Workspace& workspace, StreamHandle stream) {
  launch_scores16<HalfMethod>(job, measure, kind, scores, workspace, stream);
}

void launch_f16_tensor_peaks(const NccJob& job, Measure measure, Peak* peaks, Workspace& workspace,
                             StreamHandle stream) {
  launch_peaks16<HalfMethod>(job, measure, peaks, workspace, stream);
}

}  // namespace dic::kernels

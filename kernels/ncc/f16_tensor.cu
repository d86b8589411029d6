#include "ncc/u16_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Pictures of up to 12 bit as half floats, for zncc. Operands are exact: elements of the window less the
/// middle of the range, those of the reference less a value close to their mean, so that what the f32 sums
/// round away is small beside the covariance.
struct HalfMethod {
  static constexpr std::string_view name = "cuda-f16-tensor";
  using Products = HalfProducts;
  using Square = int;
  static constexpr std::array shapes{WarpShape16{5, true}, WarpShape16{2, false}, WarpShape16{4, false},
                                     WarpShape16{6, false}, WarpShape16{8, false}};
  static constexpr int parts_of_lone_warp = 2;
  static constexpr int tile_element_bytes = sizeof(float);  // scores take the products' place

  struct ReferenceSums {
    int sum;  ///< of the operands
    std::int64_t variation;
    int origin;
  };

  static int origin(const NccJob& job) { return 1 << (job.bit_depth - 1); }
  __device__ static Products products(int origin) { return Products(origin); }
  __device__ static float* scores(float* products, int) { return products; }

  __device__ static void prepare(const StagedReference& reference, ReferenceSums& out) {
    if (threadIdx.x < warp_size) sum_reference(reference, out);
    __syncthreads();
    const int origin = out.origin;
    reference.for_each_word(threadIdx.x, blockDim.x, [&](Word& elements, Word mask) {
      const auto operand = [&](Word element) {
        return static_cast<float>(static_cast<int>(element) - origin);
      };
      const __half2 halves = __floats2half2_rn(operand(elements & 0xffffu), operand(elements >> 16));
      elements = reinterpret_cast<const Word&>(halves) & mask;
    });
    __syncthreads();
  }

  /// The origin is as close to the mean as it can be with all differences within the 11 bits of a half.
  __device__ static void sum_reference(const StagedReference& reference, ReferenceSums& out) {
    Word sum = 0, highest = 0, lowest = ~0u;
    std::uint64_t squares = 0;
    reference.for_each_word(threadIdx.x, warp_size, [&](Word elements, Word mask) {
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
    int n;
    float products_scale, sum;
    float scale;  ///< inverse root of its variation; 0 = no contrast

    __device__ Reference(int elements, const ReferenceSums& sums)
        : n(elements),
          products_scale(static_cast<float>(n) / Products::unit),
          sum(static_cast<float>(sums.sum)) {
      scale = sums.variation > 0 ? inverse_root(static_cast<float>(sums.variation)) : 0.0f;
    }
    __device__ bool can_score() const { return scale > 0; }

    __device__ float score(float product, const WindowSum16& window) const {
      const auto window_sum = static_cast<int>(window.sum);
      const float covariance = products_scale * product - sum * static_cast<float>(window_sum);
      const std::int64_t variation = n * window.squares - std::int64_t{window_sum} * window_sum;
      return normalized(covariance, scale, static_cast<float>(variation));
    }
  };
};

}  // namespace

std::string refuses_f16_tensor(const NccJob& job) {
  if (job.bit_depth < 1 || job.bit_depth > HalfProducts::most_bits)
    return "cuda-f16-tensor takes pictures of at most 12 bit.";
  if (job.shifts.count() > 0 && !scores_fit16<HalfMethod>(job, false))
    return "cuda-f16-tensor does references up to about 181x181.";
  return {};
}

int f16_tensor_shared_bytes(const NccJob& job) { return choose_cut16<HalfMethod>(job, true).shared_bytes(); }

bool f16_tensor_scores_fit(const NccJob& job, bool peaks) { return scores_fit16<HalfMethod>(job, peaks); }

void launch_f16_tensor_scores(const NccJob& job, Measure measure, ScoreKind kind, float* scores,
                              StreamHandle stream) {
  launch_tensor16<HalfMethod, true>(job, {.measure = measure, .kind = kind, .scores = scores}, stream);
}

void launch_f16_tensor_peaks(const NccJob& job, Measure measure, Peak* peaks, StreamHandle stream) {
  launch_tensor16<HalfMethod, true>(job, {.measure = measure, .peaks = peaks}, stream);
}

}  // namespace dic::kernels

#include <algorithm>
#include <cstdint>
#include <dic/error.hpp>
#include <vector>

#include "bench/bench.hpp"
#include "bench/timing.hpp"
#include "core/cuda_devices.hpp"
#include "core/device_name.hpp"
#include "core/parallel.hpp"
#include "core/simd_targets.hpp"  // must precede Highway

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/ceilings.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DIC_BENCH_CEILINGS_ONCE
#define DIC_BENCH_CEILINGS_ONCE
namespace dic::bench {

/// Does multiply-adds in registers and returns their number; `sink` receives a result that depends on all of
/// them.
using MultiplyAdds = double (*)(std::int64_t rounds, double& sink);
struct MultiplyAddTable {
  MultiplyAdds f32, f64, i16;  ///< null if there is no such instruction
};

}  // namespace dic::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace dic::bench {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Independent chains: two units with a latency of 4 or 5 cycles are kept busy, and 16 registers suffice.
constexpr int kChains = 12;

template <typename T>
double floats(std::int64_t rounds, double& sink) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, T(0.999)), term = hn::Set(d, T(0.001));
  hn::Vec<decltype(d)> chains[kChains];
  for (int k = 0; k < kChains; ++k) chains[k] = hn::Set(d, T(k));
  for (std::int64_t i = 0; i < rounds; ++i)
    for (auto& chain : chains) chain = hn::MulAdd(chain, factor, term);
  auto sum = chains[0];
  for (int k = 1; k < kChains; ++k) sum = hn::Add(sum, chains[k]);
  sink = static_cast<double>(hn::GetLane(sum));
  return static_cast<double>(rounds) * kChains * static_cast<double>(hn::Lanes(d));
}

#if HWY_TARGET != HWY_SCALAR
double integers(std::int64_t rounds, double& sink) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto factor = hn::Set(d, std::int16_t{3});
  hn::Vec<decltype(wide)> chains[kChains], halves[kChains];
  for (int k = 0; k < kChains; ++k) chains[k] = halves[k] = hn::Set(wide, k);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (int k = 0; k < kChains; ++k) {
      const auto changing = hn::BitCast(d, chains[k]);  // the compiler would multiply a constant only once
      chains[k] = hn::ReorderWidenMulAccumulate(wide, changing, factor, chains[k], halves[k]);
    }
  auto sum = hn::Add(chains[0], halves[0]);
  for (int k = 1; k < kChains; ++k) sum = hn::Add(sum, hn::Add(chains[k], halves[k]));
  sink = hn::GetLane(sum);
  return static_cast<double>(rounds) * kChains * static_cast<double>(hn::Lanes(d));
}
#endif

}  // namespace

MultiplyAddTable multiply_adds() {
#if HWY_TARGET == HWY_SCALAR
  return {floats<float>, floats<double>, nullptr};
#else
  return {floats<float>, floats<double>, integers};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace dic::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if HWY_ARCH_X86_64 && HWY_COMPILER_GCC_ACTUAL
#include <immintrin.h>
#define DIC_BENCH_HAVE_VNNI 1
#else
#define DIC_BENCH_HAVE_VNNI 0
#endif

namespace dic::bench {
HWY_EXPORT(multiply_adds);
namespace {

#if DIC_BENCH_HAVE_VNNI
/// Products of u8 by AVX-512 VNNI, which Highway 1.0 does not offer.
__attribute__((target("avx512f,avx512vnni"))) double bytes(std::int64_t rounds, double& sink) {
  constexpr int kChains = 12;
  const __m512i window = _mm512_set1_epi8(3), reference = _mm512_set1_epi8(-2);
  __m512i chains[kChains];
  for (int k = 0; k < kChains; ++k) chains[k] = _mm512_set1_epi32(k);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (auto& chain : chains) chain = _mm512_dpbusd_epi32(chain, window, reference);
  __m512i sum = chains[0];
  for (int k = 1; k < kChains; ++k) sum = _mm512_add_epi32(sum, chains[k]);
  sink = _mm512_cvtsi512_si32(sum);
  return static_cast<double>(rounds) * kChains * 64;
}
#endif

/// Null if there is no such instruction.
MultiplyAdds byte_multiply_adds() {
#if DIC_BENCH_HAVE_VNNI
  if (__builtin_cpu_supports("avx512vnni")) return bytes;
#endif
  return nullptr;
}

/// The highest rate that `once` returns in several repeats, because a ceiling is the rate of an otherwise
/// idle machine.
template <typename Once>
double best_of(int repeats, const Once& once) {
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) best = std::max(best, once());
  return best;
}

double operations_per_second(core::ThreadPool& pool, MultiplyAdds work) {
  constexpr std::int64_t kRounds = 4'000'000;  // about 20 ms
  std::vector<double> counts(pool.size()), sinks(pool.size());
  const double seconds = time_of([&] {
    pool.parallel_for(pool.size(), 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k) counts[k] = work(kRounds, sinks[k]);
    });
  });
  double total = 0;
  for (const double count : counts) total += 2 * count;
  return total / seconds;
}

/// McCalpin's STREAM triad: a = b + factor * c over arrays larger than the caches, 24 bytes per element.
class Triad {
 public:
  explicit Triad(core::ThreadPool& pool)
      : pool_(pool), a_(kElements), b_(kElements, 1.0), c_(kElements, 2.0) {}

  double bytes_per_second() {
    const double seconds = time_of([&] {
      pool_.parallel_for(kElements, kElements / pool_.size() + 1,
                         [&](std::int64_t begin, std::int64_t end, int) {
                           for (std::int64_t i = begin; i < end; ++i) a_[i] = b_[i] + 0.5 * c_[i];
                         });
    });
    return 24.0 * kElements / seconds;
  }

 private:
  static constexpr std::int64_t kElements = 16 << 20;

  core::ThreadPool& pool_;
  std::vector<double> a_, b_, c_;
};

/// The one GPU that a device string names.
int cuda_ordinal(const std::string& device) {
  const std::vector<int> ordinals = core::parse_device(device).ordinals;
  if (ordinals.size() != 1)
    throw UsageError("Ceilings are those of one device: \"" + device + "\" names several.");
  return ordinals.front();
}

std::vector<Ceiling> cpu_ceilings(const Options& options) {
  core::ThreadPool pool(options.threads);
  const MultiplyAddTable table = HWY_DYNAMIC_DISPATCH(multiply_adds)();
  std::vector<Ceiling> found;
  const auto add = [&](const std::string& name, MultiplyAdds work) {
    const auto once = [&] { return operations_per_second(pool, work); };
    if (work) found.push_back({name, "op/s", best_of(options.repeats, once)});
  };
  add("f32 multiply-adds", table.f32);
  add("f64 multiply-adds", table.f64);
  add("i16 multiply-adds", table.i16);
  add("u8 multiply-adds", byte_multiply_adds());
  Triad triad(pool);
  found.push_back({"memory", "B/s", best_of(options.repeats, [&] { return triad.bytes_per_second(); })});
  return found;
}

std::vector<Ceiling> cuda_ceilings(const Options& options) {
  std::vector<Ceiling> found;
  for (const core::CudaCeiling& ceiling :
       core::measure_cuda_ceilings(cuda_ordinal(options.device), options.repeats))
    found.push_back({ceiling.name, ceiling.is_bandwidth ? "B/s" : "op/s", ceiling.per_second});
  return found;
}

}  // namespace

std::vector<Ceiling> ceilings(const Options& options) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  const std::string backend = core::parse_device(options.device).backend;
  if (backend == "opencl") return {};
  if (backend == "cpu") return cpu_ceilings(options);
  return cuda_ceilings(options);
}

}  // namespace dic::bench
#endif

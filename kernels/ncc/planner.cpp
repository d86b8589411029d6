#include <algorithm>
#include <dic/kernels/ncc.hpp>

// Choice of the fastest variant for a job: rules in order, measured on an H100 (docs/performance-tables.md).
namespace dic::kernels {
namespace {

/// Number of products of overlapping elements in all pairs.
double multiply_adds(const NccJob& job) {
  const auto overlaps = [](int reference, int search, int first, int last) {
    double sum = 0;
    for (int shift = first; shift <= last; ++shift)
      sum += std::max(0, std::min(reference, search - shift) - std::max(0, -shift));
    return sum;
  };
  const Shifts& s = job.shifts;
  return static_cast<double>(job.pairs) *
         overlaps(job.reference.height, job.search.height, s.dy_min, s.dy_max) *
         overlaps(job.reference.width, job.search.width, s.dx_min, s.dx_max);
}

/// Transforms have a fixed cost: a few us for one pair.
bool transforms_pay(const NccJob& job, Criterion) { return multiply_adds(job) >= 5e5; }

/// If a reference and the window under it fill the shared memory of a block (60 KB), a block has few shifts,
/// and cuFFT is faster for many such pairs.
bool f32_scores_pay(const NccJob& job, Criterion) {
  const double window =
      (job.reference.height + job.shifts.ny() - 1.0) * (job.reference.width + job.shifts.nx() - 1.0);
  return job.reference.height * job.reference.width + window <= 15000 || multiply_adds(job) < 3e9;
}

/// cuFFT moves every spectrum through memory several times, and takes 30 us for one pair: that pays for many
/// shifts of large references, or of types that are slow in other variants (16 bit and f64).
bool cufft_pays(const NccJob& job, Criterion) {
  const int reference = std::min(job.reference.height, job.reference.width);
  const int shifts = std::min(job.shifts.ny(), job.shifts.nx());
  const int least_reference = job.type == ScalarType::u8 ? 48 : job.type == ScalarType::u16 ? 24 : 32;
  return multiply_adds(job) >= 8e6 && reference >= least_reference && shifts >= (reference >= 48 ? 32 : 40);
}

/// With so few shifts, a thread per shift leaves most of a large GPU idle.
bool has_few_shifts(const NccJob& job, Criterion) {
  return job.pairs * job.shifts.count() <= (job.type == ScalarType::u8 ? 20000 : 32768);
}
/// With so few shifts of a large reference, even a warp per shift leaves most of a large GPU idle.
bool has_few_large_shifts(const NccJob& job, Criterion) {
  const int reference = std::min(job.reference.height, job.reference.width);
  return reference >= 16 && job.pairs * job.shifts.count() <= 128 * std::int64_t{reference};
}

/// Tensor cores take longer for their first sums than a block per shift for all of them.
bool is_one_small_pair(const NccJob& job, Criterion criterion) {
  const bool is_integer = job.type == ScalarType::u8 || job.type == ScalarType::u16;
  return is_integer && criterion == Criterion::cross_correlation && has_few_large_shifts(job, criterion) &&
         multiply_adds(job) <= 2e6;
}

/// A variant, and the condition under which it is faster than all variants of the rules below.
struct Rule {
  std::string_view variant;
  const char* reason;
  bool (*pays)(const NccJob& job, Criterion criterion) = nullptr;  ///< null: always
  /// True if the rule also applies to sums of the references that cuda-masked has packed. It excludes
  /// transforms: their rounding errors spread over all shifts.
  bool packed_sums = false;
};
constexpr Rule rules[]{
    {"cuda-few-shifts", "up to 9x9 shifts of 8-bit images: a warp for each pair"},
    {"cuda-block-per-shift", "the sums of a small pair: a block for each", is_one_small_pair},
    {"cuda-u8-tensor", "8-bit images: exact sums on tensor cores", nullptr, true},
    {"cuda-f16-tensor", "up to 12 bit: scores from half floats on tensor cores"},
    {"cuda-u16-tensor", "16-bit images: exact sums on tensor cores", nullptr, true},
    {"cuda-f32-tensor", "float images: scores from two half floats for each element on tensor cores"},
    {"cuda-f32-scores", "float images: scores from f32 products about the means", f32_scores_pay},
    {"cuda-fft-fused", "float sums: transforms that stay in shared memory", transforms_pay},
    {"cuda-fft-split", "float sums of large matrices: transforms", transforms_pay},
    {"cuda-fft", "large references with many shifts: transforms by cuFFT", cufft_pays},
    {"cuda-block-per-shift", "few shifts of large references: a block for each", has_few_large_shifts},
    {"cuda-warp-per-shift", "few shifts: a warp for each", has_few_shifts},
    {"cuda-dp4a", "8-bit images, any shifts: four products in an instruction", nullptr, true},
    {"cuda-registers", "many shifts: tiles of them in registers", nullptr, true},
};
constexpr std::string_view general_variant = "cuda-basic";

bool can_run(const NccVariant& variant, const NccJob& job, const NccDevice& device) {
  return (device.cufft || !variant.needs_cufft) && variant.unsupported_reason(job).empty() &&
         variant.shared_bytes(job) <= device.shared_bytes;
}

}  // namespace

NccPlan plan_ncc(const NccJob& job, Criterion criterion, const NccDevice& device) {
  const auto fits = [&](const Rule& rule) {
    const NccVariant& variant = ncc_variant(rule.variant);
    return std::ranges::find(variant.criteria, criterion) != variant.criteria.end() &&
           can_run(variant, job, device) && (!rule.pays || rule.pays(job, criterion));
  };
  const auto rule = job.shifts.count() > 0 ? std::ranges::find_if(rules, fits) : std::end(rules);
  if (rule == std::end(rules)) return {&ncc_variant(general_variant), "the variant that supports everything"};
  return {&ncc_variant(rule->variant), rule->reason};
}

const NccVariant& plan_packed_sums(const NccJob& job, const NccDevice& device) {
  const auto rule = std::ranges::find_if(
      rules, [&](const Rule& r) { return r.packed_sums && can_run(ncc_variant(r.variant), job, device); });
  return ncc_variant(rule == std::end(rules) ? general_variant : rule->variant);
}

}  // namespace dic::kernels

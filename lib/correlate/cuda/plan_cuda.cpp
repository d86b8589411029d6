#include "correlate/cuda/plan_cuda.hpp"

#include <algorithm>
#include <array>
#include <dic/error.hpp>

namespace dic::correlate::cuda {
namespace {

Surfaces::Type sums_of(ScalarType type, Criterion criterion, int ref_h, int ref_w) {
  return criterion == Criterion::cross_correlation ? sum_type(type)
                                                   : kernels::sums_for_scores(type, ref_h, ref_w);
}

constexpr std::array data_centre{80, 87, 90, 100, 103};  ///< compute capabilities

/// cuda-u8-tensor keeps a block's window and reference in shared memory: 160 KB hold 255x255 elements, the 99
/// KB of desktop GPUs 128x128. The others say what they need.
bool fits_shared_memory(const kernels::NccVariant& variant, const CorrelateShape& shape,
                        int compute_capability) {
  const bool large = std::ranges::find(data_centre, compute_capability) != data_centre.end();
  if (variant.name == "cuda-u8-tensor")
    return large || std::max(shape.reference.height, shape.reference.width) <= 128;
  const int limit = !large ? 99 : compute_capability >= 90 ? 227 : 163;  // KB
  return !variant.shared_bytes || variant.shared_bytes(job_of(shape)) <= limit * 1024;
}

bool can_do(std::string_view name, const CorrelateShape& shape, const DeviceProperties& device) {
  const kernels::NccVariant& variant = variant_named(name);
  const bool loads_cufft = variant.lacks != nullptr;
  return std::ranges::find(variant.types, shape.type) != variant.types.end() &&
         std::ranges::find(variant.criteria, shape.criterion) != variant.criteria.end() &&
         shape.shifts.count() > 0 && (device.cufft || !loads_cufft) &&
         kernels::refusal(variant, job_of(shape)).empty() &&
         fits_shared_memory(variant, shape, device.compute_capability);
}

/// Multiply-adds of elements that meet, in all pairs.
double work(const CorrelateShape& shape) {
  const auto meet = [](int ref, int search, int first, int last) {
    double sum = 0;
    for (int shift = first; shift <= last; ++shift)
      sum += std::max(0, std::min(ref, search - shift) - std::max(0, -shift));
    return sum;
  };
  const Shifts& s = shape.shifts;
  return static_cast<double>(shape.pairs) *
         meet(shape.reference.height, shape.search.height, s.dy_min, s.dy_max) *
         meet(shape.reference.width, shape.search.width, s.dx_min, s.dx_max);
}

/// Transforms have a cost of their own: a few us for one pair.
bool pays_transforms(const CorrelateShape& shape) { return work(shape) >= 5e5; }
/// Where a reference and what it meets fill the shared memory of a block (60 KB), blocks have few shifts
/// each: many such pairs are for cuFFT.
bool pays_f32_scores(const CorrelateShape& shape) {
  const double window =
      (shape.reference.height + shape.shifts.ny() - 1.0) * (shape.reference.width + shape.shifts.nx() - 1.0);
  return shape.reference.height * shape.reference.width + window <= 15000 || work(shape) < 3e9;
}
/// cuFFT moves every spectrum through memory several times, and takes 30 us for one pair: that pays for many
/// shifts of references that other variants have trouble with (16 bit and f64), or that are large.
bool pays_cufft(const CorrelateShape& shape) {
  const int reference = std::min(shape.reference.height, shape.reference.width);
  const int shifts = std::min(shape.shifts.ny(), shape.shifts.nx());
  const int least_reference = shape.type == ScalarType::u8 ? 48 : shape.type == ScalarType::u16 ? 24 : 32;
  return work(shape) >= 8e6 && reference >= least_reference && shifts >= (reference >= 48 ? 32 : 40);
}
/// A thread for each of so few shifts leaves most of a large GPU idle, and so does a warp for fewer still.
bool has_few_shifts(const CorrelateShape& shape) {
  return shape.pairs * shape.shifts.count() <= (shape.type == ScalarType::u8 ? 20000 : 32768);
}
bool has_few_large_shifts(const CorrelateShape& shape) {
  const int reference = std::min(shape.reference.height, shape.reference.width);
  return reference >= 16 && shape.pairs * shape.shifts.count() <= 128 * std::int64_t{reference};
}

/// Tensor cores are busy for longer with the first sums than they need for many more.
bool is_one_small_pair(const CorrelateShape& shape) {
  const bool is_integer = shape.type == ScalarType::u8 || shape.type == ScalarType::u16;
  return is_integer && shape.criterion == Criterion::cross_correlation && has_few_large_shifts(shape) &&
         work(shape) <= 2e6;
}

/// The first rule holds whose variant can do the job and pays.
struct Rule {
  std::string_view variant;
  const char* reason;
  bool (*pays)(const CorrelateShape& shape) = nullptr;  ///< null: always
};
constexpr Rule rules[]{
    {"cuda-few-shifts", "up to 9x9 shifts of 8-bit images: a warp for each pair"},
    {"cuda-block-per-shift", "the sums of a small pair: a block for each", is_one_small_pair},
    {"cuda-u8-tensor", "8-bit images: exact sums on tensor cores"},
    {"cuda-f16-tensor", "up to 12 bit: scores from half floats on tensor cores"},
    {"cuda-u16-tensor", "16-bit images: exact sums on tensor cores"},
    {"cuda-f32-tensor", "float images: scores from two half floats for each element on tensor cores"},
    {"cuda-f32-scores", "float images: scores from f32 products about the means", pays_f32_scores},
    {"cuda-fft-fused", "float sums: transforms that stay in shared memory", pays_transforms},
    {"cuda-fft-split", "float sums of large matrices: transforms", pays_transforms},
    {"cuda-fft", "large references with many shifts: transforms by cuFFT", pays_cufft},
    {"cuda-block-per-shift", "few shifts of large references: a block for each", has_few_large_shifts},
    {"cuda-warp-per-shift", "few shifts: a warp for each", has_few_shifts},
    {"cuda-dp4a", "8-bit images, any shifts: four products in an instruction"},
    {"cuda-registers", "many shifts: tiles of them in registers"},
};

}  // namespace

const kernels::NccVariant& variant_named(std::string_view name) {
  return *std::ranges::find(kernels::ncc_variants(), name, &kernels::NccVariant::name);
}

kernels::NccJob job_of(const CorrelateShape& shape) {
  kernels::NccJob job{
      .pairing = shape.pairing,
      .type = shape.type,
      .bit_depth = shape.bit_depth,
      .sums = sums_of(shape.type, shape.criterion, shape.reference.height, shape.reference.width),
      .reference = {.count = shape.references,
                    .height = shape.reference.height,
                    .width = shape.reference.width},
      .search = {.height = shape.search.height, .width = shape.search.width},
      .shifts = shape.shifts,
      .pairs = shape.pairs};
  return job;
}

const std::vector<CorrelateVariant>& variants() {
  static const std::vector<CorrelateVariant> all = [] {
    std::vector<CorrelateVariant> infos;
    for (const kernels::NccVariant& v : kernels::ncc_variants())
      infos.push_back({.name = std::string(v.name),
                       .backend = "cuda",
                       .pairings = {v.pairings.begin(), v.pairings.end()},
                       .types = {v.types.begin(), v.types.end()},
                       .criteria = {v.criteria.begin(), v.criteria.end()},
                       .masks = v.masks,
                       .idea = std::string(v.idea)});
    return infos;
  }();
  return all;
}

std::string problem(std::string_view name, const CorrelateShape& shape) {
  const kernels::NccVariant& variant = variant_named(name);
  const std::string obstacle = kernels::obstacle(variant);
  return obstacle.empty() ? kernels::refusal(variant, job_of(shape)) : obstacle;
}

CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties& device) {
  if (shape.masked) {
    if (shape.shifts.count() > 0 && !can_do("cuda-masked", shape, device))
      throw UsageError("References this large cannot be masked on the GPU: use --device cpu.");
    return {"cuda-masked", "only some elements of the references count"};
  }
  for (const Rule& rule : rules)
    if (can_do(rule.variant, shape, device) && (!rule.pays || rule.pays(shape)))
      return {std::string(rule.variant), rule.reason};
  return {"cuda-basic", "the variant that does everything"};
}

}  // namespace dic::correlate::cuda

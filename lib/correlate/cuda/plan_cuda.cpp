#include "correlate/cuda/plan_cuda.hpp"

#include <algorithm>
#include <array>
#include <dic/error.hpp>

namespace dic::correlate::cuda {
namespace {

Surfaces::Type sums_of(ScalarType type, Measure measure, int ref_h, int ref_w) {
  return measure == Measure::sums ? sum_type(type) : kernels::sums_for_scores(type, ref_h, ref_w);
}

constexpr std::array data_centre{80, 87, 90, 100, 103};  ///< compute capabilities

/// cuda-u8-tensor keeps a block's window and reference in shared memory: 160 KB hold 255x255 elements, the 99
/// KB of desktop GPUs 128x128.
bool fits_shared_memory(const CorrelateShape& shape, int compute_capability) {
  return std::max(shape.ref_h, shape.ref_w) <= 128 ||
         std::ranges::find(data_centre, compute_capability) != data_centre.end();
}

/// True where a tensor-core variant for 16-bit pictures does the job on such a device.
bool can_do_16_bit(std::string_view name, const CorrelateShape& shape, int compute_capability) {
  const kernels::NccVariant& variant = variant_named(name);
  const kernels::NccJob job = job_of(shape);
  if (shape.shifts.count() == 0 || shape.type != ScalarType::u16 ||
      std::ranges::find(variant.measures, shape.measure) == variant.measures.end() ||
      !kernels::refusal(variant, job).empty())
    return false;
  const bool large = std::ranges::find(data_centre, compute_capability) != data_centre.end();
  const int limit = !large ? 99 : compute_capability >= 90 ? 227 : 163;  // KB
  return variant.shared_bytes(job) <= limit * 1024;
}

}  // namespace

const kernels::NccVariant& variant_named(std::string_view name) {
  return *std::ranges::find(kernels::ncc_variants(), name, &kernels::NccVariant::name);
}

kernels::NccJob job_of(const CorrelateShape& shape) {
  kernels::NccJob job{.form = shape.form,
                      .type = shape.type,
                      .bit_depth = shape.bit_depth,
                      .sums = sums_of(shape.type, shape.measure, shape.ref_h, shape.ref_w),
                      .reference = {.count = shape.references, .height = shape.ref_h, .width = shape.ref_w},
                      .search = {.height = shape.search_h, .width = shape.search_w},
                      .shifts = shape.shifts,
                      .pairs = shape.pairs};
  return job;
}

const std::vector<VariantInfo>& variants() {
  static const std::vector<VariantInfo> all = [] {
    std::vector<VariantInfo> infos;
    for (const kernels::NccVariant& v : kernels::ncc_variants())
      infos.push_back({.name = std::string(v.name),
                       .backend = "cuda",
                       .forms = {v.forms.begin(), v.forms.end()},
                       .types = {v.types.begin(), v.types.end()},
                       .measures = {v.measures.begin(), v.measures.end()},
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

CorrelatePlan plan(const CorrelateShape& shape, const DeviceFacts& device) {
  if (shape.masked) throw UsageError("The CUDA backend does not take masks: use --device cpu.");
  const kernels::NccVariant& tensor = variant_named("cuda-u8-tensor");
  if (shape.type == ScalarType::u8 && kernels::refusal(tensor, job_of(shape)).empty() &&
      fits_shared_memory(shape, device.compute_capability))
    return {"cuda-u8-tensor", "8-bit pictures: exact sums on tensor cores"};
  if (can_do_16_bit("cuda-f16-tensor", shape, device.compute_capability))
    return {"cuda-f16-tensor", "up to 12 bit: scores from half floats on tensor cores"};
  if (can_do_16_bit("cuda-u16-tensor", shape, device.compute_capability))
    return {"cuda-u16-tensor", "16-bit pictures: exact sums on tensor cores"};
  constexpr std::int64_t too_few_for_threads = 32768;  // a thread each leaves most of a large GPU idle
  if (shape.pairs * shape.shifts.count() <= too_few_for_threads)
    return {"cuda-warp-per-shift", "few shifts: a warp for each"};
  return {"cuda-basic", "many shifts: a thread for each"};
}

}  // namespace dic::correlate::cuda

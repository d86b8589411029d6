#include "correlate/cuda/plan_cuda.hpp"

#include <algorithm>
#include <array>
#include <dic/error.hpp>

namespace dic::correlate::cuda {
namespace {

Surfaces::Type sums_for(const CorrelateShape& shape) {
  if (shape.criterion == Criterion::cross_correlation) return sum_type(shape.type);
  return kernels::sums_for_scores(shape.type, shape.reference.height, shape.reference.width);
}

/// Compute capabilities whose blocks can have more than 99 KB of shared memory.
constexpr std::array data_centre{80, 87, 90, 100, 103};

kernels::NccDevice planner_device(const DeviceProperties& device) {
  const bool large = std::ranges::find(data_centre, device.compute_capability) != data_centre.end();
  const int kilobytes = !large ? 99 : device.compute_capability >= 90 ? 227 : 163;
  return {.shared_bytes = kilobytes * 1024, .cufft = device.cufft};
}

}  // namespace

const kernels::NccVariant& variant_named(std::string_view name) { return kernels::ncc_variant(name); }

kernels::NccJob job_of(const CorrelateShape& shape) {
  kernels::NccJob job{.pairing = shape.pairing,
                      .type = shape.type,
                      .bit_depth = shape.bit_depth,
                      .sums = sums_for(shape),
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
                       .masks = v.supports_masks,
                       .idea = std::string(v.idea)});
    return infos;
  }();
  return all;
}

std::string unsupported_reason(std::string_view name, const CorrelateShape& shape) {
  const kernels::NccVariant& variant = variant_named(name);
  const std::string reason = variant.unavailable_reason();
  return reason.empty() ? variant.unsupported_reason(job_of(shape)) : reason;
}

CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties& device) {
  if (shape.masked) {
    if (shape.shifts.count() > 0 && !variant_named("cuda-masked").unsupported_reason(job_of(shape)).empty())
      throw UsageError("References this large cannot be masked on the GPU: use --device cpu.");
    return {"cuda-masked", "only some elements of the references count"};
  }
  const auto [variant, reason] = kernels::plan_ncc(job_of(shape), shape.criterion, planner_device(device));
  return {std::string(variant->name), reason};
}

}  // namespace dic::correlate::cuda

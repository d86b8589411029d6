#include <algorithm>
#include <array>
#include <dic/error.hpp>

#include "correlate/backend.hpp"

namespace dic {
namespace correlate {
namespace {

template <typename T>
bool holds(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

std::span<const BackendEntry> backends() {
  static const std::array<BackendEntry, 3> all = {cpu_backend(), cuda_backend(), opencl_backend()};
  return all;
}

const BackendEntry& backend_named(std::string_view name) {
  for (const BackendEntry& backend : backends())
    if (backend.name == name) return backend;
  throw UsageError("There is no device \"" + std::string(name) + "\": use cpu, cuda or opencl.");
}

std::string unsupported_reason(const BackendEntry& backend, std::string_view variant,
                               const CorrelateShape& shape) {
  const std::vector<CorrelateVariant>& all = backend.variants();
  const auto info = std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.name == variant; });
  const std::string name(variant);
  if (info == all.end())
    return "The " + std::string(backend.name) + " backend has no correlation variant \"" + name + "\".";
  if (!holds(info->pairings, shape.pairing))
    return name + " does not do the pairing " + std::string(to_string(shape.pairing)) + ".";
  if (!holds(info->types, shape.type))
    return name + " does not take " + std::string(to_string(shape.type)) + " images.";
  if (!holds(info->criteria, shape.criterion))
    return name + " does not compute " + std::string(to_string(shape.criterion)) + ".";
  if (shape.masked && !info->masks) return name + " does not take masks.";
  if (shape.pairs == 0 || shape.shifts.count() == 0) return {};  // every variant supports an empty job
  return backend.unsupported_reason(variant, shape);
}

}  // namespace correlate

std::vector<CorrelateVariant> correlate_variants() {
  std::vector<CorrelateVariant> all;
  for (const auto& backend : correlate::backends())
    all.insert(all.end(), backend.variants().begin(), backend.variants().end());
  return all;
}

CorrelatePlan plan_correlation(const CorrelateShape& shape, const DeviceProperties& device) {
  return correlate::backend_named(device.backend).plan(shape, device);
}

}  // namespace dic

#pragma once

#include <array>
#include <string>
#include <string_view>

#include "correlate/backend.hpp"

/// The parts of the OpenCL backend that need no device: its variants, what they support, and the planner.
namespace dic::correlate::opencl {

/// Work items of a work group, in x and y.
constexpr int kItemsX = 8, kItemsY = 8;
constexpr std::size_t kItems = std::size_t{kItemsX} * kItemsY;
/// Neighbouring shifts of a work item, equal to SHIFTS in kernels/common.cl.
constexpr int kShiftsOfItem = 8;

/// Numbers of work items: all of them (global), and those of a work group (local).
struct Range {
  std::array<std::size_t, 3> global{}, local{};
};

struct Variant {
  std::string_view name;
  std::string_view file;  ///< file name in kernels/
  std::string_view idea;
  Range (*range)(const Shifts& shifts, std::int64_t pairs);
};
/// The registered variant of this name.
const Variant& variant_named(std::string_view name);

const std::vector<CorrelateVariant>& variants();
CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties& device);

/// The limits of a device that matter to jobs.
struct Limits {
  bool float64 = false;
  std::size_t largest_buffer = 0;  ///< bytes
  std::size_t local_bytes = 0;     ///< local memory of a work group, bytes
  std::size_t work_group = 0;      ///< most work items of a work group
};
/// Why a device of these limits cannot do a job: one sentence, or empty. image_bytes: of all search images.
std::string problem_of(const Limits& limits, const CorrelateShape& shape, std::size_t image_bytes);
/// Device memory for a sum of products, and for a packed reference, in bytes.
std::size_t bytes_of_sum(const CorrelateShape& shape);
std::size_t bytes_of_reference(const CorrelateShape& shape);

/// Build options of the kernels for a job: types and the size of work groups.
std::string build_options(const CorrelateShape& shape);

}  // namespace dic::correlate::opencl

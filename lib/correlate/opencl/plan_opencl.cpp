#include "correlate/opencl/plan_opencl.hpp"

#include <algorithm>

namespace dic::correlate::opencl {
namespace {

/// Largest number of u8 elements whose sum of products always fits 32 bits.
constexpr std::int64_t kMostElementsOf32Bits = 257 * 257;
/// Largest local memory of a kernel, bytes: the staged window of float64 in template.cl.
constexpr std::size_t kLocalBytes = 18 << 10;

std::size_t groups_of(std::size_t count, std::size_t size) { return (count + size - 1) / size; }

/// A range with its work groups in one row, enough for `items` work items per pair.
Range in_one_row(std::size_t items, std::int64_t pairs) {
  return {.global = {groups_of(items, kItems) * kItems, static_cast<std::size_t>(pairs), 1},
          .local = {kItems, 1, 1}};
}

Range range_of_basic(const Shifts& shifts, std::int64_t pairs) {
  return in_one_row(static_cast<std::size_t>(shifts.count()), pairs);
}

Range range_of_registers(const Shifts& shifts, std::int64_t pairs) {
  return in_one_row(groups_of(shifts.nx(), kShiftsOfItem) * shifts.ny(), pairs);
}

Range range_of_template(const Shifts& shifts, std::int64_t pairs) {
  return {.global = {groups_of(shifts.nx(), kItemsX * kShiftsOfItem) * kItemsX,
                     groups_of(shifts.ny(), kItemsY) * kItemsY, static_cast<std::size_t>(pairs)},
          .local = {kItemsX, kItemsY, 1}};
}

constexpr Variant kVariants[] = {
    {"opencl-basic", "basic.cl", "one work item per shift", range_of_basic},
    {"opencl-registers", "registers.cl",
     "eight shifts of a work item in registers, the reference in local memory", range_of_registers},
    {"opencl-template", "template.cl",
     "eight shifts of a work item in registers, the window of a tile of shifts in local memory",
     range_of_template}};

/// OpenCL types that the build options name; see kernels/common.cl.
struct Types {
  const char *element, *reference, *factor, *sum;
};

Types types_of(const CorrelateShape& shape) {
  switch (shape.type) {
    case ScalarType::u8:
      return {"uchar", "uchar", "uint", bytes_of_sum(shape) == 4 ? "uint" : "ulong"};
    case ScalarType::u16:
      return {"ushort", "ushort", "uint", "ulong"};
    case ScalarType::i32:
      return {"int", "int", "ulong", "ulong"};  // unsigned arithmetic may wrap, signed may not
    case ScalarType::f32:
      return {"float", "double", "double", "double"};
    case ScalarType::f64:
      break;
  }
  return {"double", "double", "double", "double"};
}

std::string megabytes(std::size_t bytes) { return std::to_string((bytes >> 20) + 1) + " MB"; }

}  // namespace

const Variant& variant_named(std::string_view name) {
  return *std::ranges::find(kVariants, name, &Variant::name);
}

const std::vector<CorrelateVariant>& variants() {
  static const std::vector<CorrelateVariant> all = [] {
    std::vector<CorrelateVariant> infos;
    for (const Variant& variant : kVariants)
      infos.push_back(
          {.name = std::string(variant.name),
           .backend = "opencl",
           .pairings = {Pairing::one_to_one, Pairing::one_to_many, Pairing::n_to_mn, Pairing::n_to_m},
           .types = {ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64},
           .criteria = {Criterion::cross_correlation, Criterion::zncc, Criterion::ncc, Criterion::ssd},
           .masks = true,
           .idea = std::string(variant.idea)});
    return infos;
  }();
  return all;
}

CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties&) {
  if (shape.shifts.count() > 0 && shape.shifts.nx() < kShiftsOfItem / 2)
    return {"opencl-basic", "so few shifts in a row do not fill the registers of a work item"};
  if (shape.shifts.nx() >= kItemsX * kShiftsOfItem && shape.shifts.ny() >= kItemsY)
    return {"opencl-template", "the shifts fill tiles, whose windows overlap most"};
  return {"opencl-registers", "shifts in a row share the elements of their windows"};
}

std::size_t bytes_of_sum(const CorrelateShape& shape) {
  const std::int64_t elements = std::int64_t{shape.reference.height} * shape.reference.width;
  return shape.type == ScalarType::u8 && elements <= kMostElementsOf32Bits ? 4 : 8;
}

std::size_t bytes_of_reference(const CorrelateShape& shape) {
  const std::size_t element = shape.type == ScalarType::f32 ? sizeof(double) : size_of(shape.type);
  return element * shape.reference.height * shape.reference.width;
}

std::string problem_of(const Limits& limits, const CorrelateShape& shape, std::size_t image_bytes) {
  const bool is_real = shape.type == ScalarType::f32 || shape.type == ScalarType::f64;
  if (is_real && !limits.float64)
    return "This OpenCL device has no float64, in which images of " + std::string(to_string(shape.type)) +
           " are summed: use --device cpu.";
  if (limits.work_group < kItems || limits.local_bytes < kLocalBytes)
    return "The work groups of this OpenCL device are too small: " + std::to_string(kItems) +
           " work items and " + std::to_string(kLocalBytes >> 10) + " KB are needed; use --device cpu.";
  const std::size_t surface = static_cast<std::size_t>(shape.shifts.count()) * bytes_of_sum(shape);
  const std::size_t largest = std::max({surface, image_bytes, bytes_of_reference(shape)});
  if (largest > limits.largest_buffer)
    return "The job needs " + megabytes(largest) + " in one piece, and this OpenCL device gives at most " +
           megabytes(limits.largest_buffer) + ": use --device cpu, or smaller images.";
  return {};
}

std::string build_options(const CorrelateShape& shape) {
  const Types types = types_of(shape);
  const auto define = [](const char* name, const std::string& value) {
    return " -D " + std::string(name) + "=" + value;
  };
  return "-cl-std=CL1.2" + define("ELEMENT", types.element) + define("REFERENCE", types.reference) +
         define("FACTOR", types.factor) + define("SUM", types.sum) +
         define("ITEMS_X", std::to_string(kItemsX)) + define("ITEMS_Y", std::to_string(kItemsY));
}

}  // namespace dic::correlate::opencl

#include <algorithm>
#include <dic/field_schema.hpp>
#include <limits>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

namespace {

template <typename T>
void copy(const NodeValues<T>& values, std::int64_t nodes, double* out) {
  if (values.empty()) {  // a strain that was not computed, an array that the run did not make
    std::fill_n(out, nodes, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  std::ranges::transform(values, out, [](T value) { return static_cast<double>(value); });
}

/// Copies the array of this name. Returns false for an unknown name.
bool copy_array(const Field& field, const std::string& name, std::int64_t nodes, double* out) {
  const FieldArray* array = find_field_array(name);
  if (array == nullptr || !array->is_in_field()) return false;
  visit_values(field, *array, [&](const auto& values) { copy(values, nodes, out); });
  return true;
}

void assign(std::int32_t* out, int value) {
  if (out) *out = value;
}

}  // namespace

void dic_result_destroy(dic_result* result) { delete result; }

dic_status dic_result_grid(const dic_result* result, std::int32_t* x0, std::int32_t* y0, std::int32_t* step,
                           std::int32_t* nx, std::int32_t* ny) {
  return guarded([&] {
    const Grid& grid = checked(result, "result").result.field.grid();
    assign(x0, grid.x0);
    assign(y0, grid.y0);
    assign(step, grid.step);
    assign(nx, grid.nx);
    assign(ny, grid.ny);
  });
}

dic_status dic_result_index(const dic_result* result, std::int64_t* index) {
  return guarded([&] { checked(index, "index") = checked(result, "result").result.index; });
}

const char* dic_result_error(const dic_result* result) { return result ? result->result.error.c_str() : ""; }

dic_status dic_result_copy(const dic_result* result, const char* name, double* values, std::int64_t count) {
  return guarded([&] {
    const Field& field = checked(result, "result").result.field;
    const std::int64_t nodes = field.grid().nodes();
    const std::string array = &checked(name, "name");
    if (count < nodes)
      throw UsageError("An array of this result has " + std::to_string(nodes) +
                       " values, but there is room for " + std::to_string(count) + ": see dic_result_grid.");
    if (!copy_array(field, array, nodes, &checked(values, "values")))
      throw UsageError("There is no array \"" + array + "\" in a result: dic.h lists the names.");
  });
}

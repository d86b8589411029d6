#include "draw/drawn_fields.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <type_traits>
#include <utility>

namespace dic::draw {

/// Maps the displacements back to the image if a camera corrected them.
MovedGrid ResultFields::moved_grid(int frame) const {
  const Grid& grid = result_.grid();
  std::vector<double> u = result_.values("u", frame), v = result_.values("v", frame);
  const double factor = 1 / result_.info().length_factor();
  for (std::vector<double>* lengths : {&u, &v})
    for (double& length : *lengths) length *= factor;
  if (camera_ && result_.positions()) {
    const NodePositions& nodes = *result_.positions();
    for (std::size_t k = 0; k < u.size(); ++k) {
      if (std::isnan(u[k])) continue;
      const Camera::Point seen = camera_->distort(nodes.x[k] + u[k], nodes.y[k] + v[k]);
      u[k] = seen.x - grid.x(static_cast<int>(k % grid.nx));
      v[k] = seen.y - grid.y(static_cast<int>(k / grid.nx));
    }
  }
  return {grid, u, v};
}

std::vector<float> ResultFields::values(const std::string& name, int frame) const {
  if (name != "magnitude") {
    std::vector<float> values = result_.values<float>(name, frame);
    if (const FieldArray* array = find_field_array(name); array && array->is_strain() && strain_factor_ != 1)
      for (float& value : values) value = static_cast<float>(value * strain_factor_);
    return values;
  }
  const bool in_space = result_.has("W");
  std::vector<float> values = result_.values<float>(in_space ? "U" : "u", frame);
  const auto add = [&](const char* axis) {
    const std::vector<float> other = result_.values<float>(axis, frame);
    std::ranges::transform(values, other, values.begin(), [](float a, float b) { return std::hypot(a, b); });
  };
  add(in_space ? "V" : "v");
  if (in_space) add("W");
  return values;
}

MeasuredField::MeasuredField(const Field& field, ResultInfo info)
    : field_(Field::without_arrays(field.shared_grid())), info_(std::move(info)) {
  field_.image_u = field.image_u;
  field_.image_v = field.image_v;
  for (const FieldArray& array : kDrawnArrays)
    visit_values(field, array, [&]<typename T>(const NodeValues<T>& values) {
      visit_values(field_, array, [&]<typename Copy>(NodeValues<Copy>& copy) {
        if constexpr (std::is_same_v<T, Copy>) copy = values;
      });
    });
}

std::vector<float> MeasuredField::values(const std::string& name, int) const {
  const auto array = std::ranges::find(kDrawnArrays, name, &FieldArray::name);
  if (array == kDrawnArrays.end()) throw UsageError("There is no field " + name + " to be drawn.");
  const double factor = array->is_length() ? info_.length_factor() : 1;
  std::vector<float> numbers;
  visit_values(field_, *array, [&](const auto& values) {
    numbers.resize(values.size());
    std::ranges::transform(values, numbers.begin(), [&](auto value) {
      return static_cast<float>(static_cast<double>(value) * factor);
    });
  });
  return numbers;
}

}  // namespace dic::draw

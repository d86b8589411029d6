#include "draw/drawn_fields.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
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
  if (name != "magnitude") return result_.values<float>(name, frame);
  std::vector<float> values = result_.values<float>("u", frame);
  const std::vector<float> v = result_.values<float>("v", frame);
  std::ranges::transform(values, v, values.begin(), [](float a, float b) { return std::hypot(a, b); });
  return values;
}

MeasuredField::MeasuredField(const Field& field, ResultInfo info)
    : field_(Field::without_arrays(field.shared_grid())), info_(std::move(info)) {
  field_.u = field.u;
  field_.v = field.v;
  field_.image_u = field.image_u;
  field_.image_v = field.image_v;
  field_.strain.exx = field.strain.exx;
  field_.strain.eyy = field.strain.eyy;
  field_.strain.exy = field.strain.exy;
}

std::vector<float> MeasuredField::values(const std::string& name, int) const {
  const StrainField& strain = field_.strain;
  for (const auto& [known, array] :
       {std::pair{"exx", &strain.exx}, {"eyy", &strain.eyy}, {"exy", &strain.exy}})
    if (name == known) return {array->begin(), array->end()};
  if (name != "u" && name != "v") throw UsageError("There is no field " + name + " to be drawn.");
  const NodeValues<double>& lengths = name == "u" ? field_.u : field_.v;
  std::vector<float> values(lengths.size());
  std::ranges::transform(lengths, values.begin(), [factor = info_.length_factor()](double length) {
    return static_cast<float>(length * factor);
  });
  return values;
}

}  // namespace dic::draw

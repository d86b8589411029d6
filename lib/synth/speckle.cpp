#include "synth/speckle.hpp"

#include <cmath>

#include "synth/random.hpp"

namespace dic {

Blob blob_of(const SpeckleSettings& settings, std::int64_t column, std::int64_t row) {
  const auto key =
      mix(mix(mix(settings.seed) + static_cast<std::uint64_t>(column)) + static_cast<std::uint64_t>(row));
  const std::uint64_t first = mix(key), second = mix(first);
  return {settings.cell * (static_cast<double>(column) + uniform(first)),
          settings.cell * (static_cast<double>(row) + uniform(second)), key & 1 ? 1.0 : -1.0};
}

Speckle::Speckle(const SpeckleSettings& settings, const Box& box)
    : settings_(settings),
      radius_(5.5 * settings.sigma),
      first_column_(cell_of(box.x_min - radius_)),
      first_row_(cell_of(box.y_min - radius_)),
      columns_(cell_of(box.x_max + radius_) - first_column_ + 1) {
  const std::int64_t rows = cell_of(box.y_max + radius_) - first_row_ + 1;
  blobs_.reserve(static_cast<std::size_t>(rows * columns_));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns_; ++column)
      blobs_.push_back(blob_of(settings, first_column_ + column, first_row_ + row));
}

std::int64_t Speckle::cell_of(double position) const {
  return static_cast<std::int64_t>(std::floor(position / settings_.cell));
}

double Speckle::at(double x, double y) const {
  const double exponent = -0.5 / (settings_.sigma * settings_.sigma);
  const std::int64_t left = cell_of(x - radius_) - first_column_,
                     right = cell_of(x + radius_) - first_column_;
  const std::int64_t top = cell_of(y - radius_) - first_row_, bottom = cell_of(y + radius_) - first_row_;
  double sum = 0;
  for (std::int64_t row = top; row <= bottom; ++row)
    for (const Blob* blob = &blobs_[row * columns_ + left]; blob <= &blobs_[row * columns_ + right]; ++blob) {
      const double dx = x - blob->x, dy = y - blob->y, r2 = dx * dx + dy * dy;
      if (r2 < radius_ * radius_) sum += blob->sign * std::exp(exponent * r2);
    }
  return sum;
}

}  // namespace dic

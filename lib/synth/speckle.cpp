#include "synth/speckle.hpp"

#include <cmath>

#include "synth/random.hpp"

namespace dic::synth {
namespace {

constexpr double kDotRadius = 2;  // radius of a dot, in sigma

/// The cell of the first period that looks like a cell; `repeat`: cells of a period, 0 = none repeats.
std::uint64_t original_of(std::int64_t cell, std::int64_t repeat) {
  return static_cast<std::uint64_t>(repeat > 0 ? (cell % repeat + repeat) % repeat : cell);
}

}  // namespace

Blob blob_of(const SpeckleSettings& settings, std::int64_t column, std::int64_t row) {
  const auto key =
      mix(mix(mix(settings.seed) + original_of(column, settings.repeat)) + original_of(row, settings.repeat));
  const std::uint64_t first = mix(key), second = mix(first);
  const double sigma = settings.sigma * std::pow(settings.spread, 2 * uniform(mix(second)) - 1);
  if (settings.texture == Texture::lattice)
    return {settings.cell * (static_cast<double>(column) + 0.5),
            settings.cell * (static_cast<double>(row) + 0.5), -1, sigma};
  return {settings.cell * (static_cast<double>(column) + uniform(first)),
          settings.cell * (static_cast<double>(row) + uniform(second)), key & 1 ? 1.0 : -1.0, sigma};
}

Speckle::Speckle(const SpeckleSettings& settings, const Box& box)
    : settings_(settings),
      radius_(5.5 * std::hypot(settings.sigma * settings.spread, settings.blur)),
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

template <typename Body>
void Speckle::each_near(double x, double y, double radius, const Body& body) const {
  const std::int64_t left = cell_of(x - radius) - first_column_, right = cell_of(x + radius) - first_column_;
  const std::int64_t top = cell_of(y - radius) - first_row_, bottom = cell_of(y + radius) - first_row_;
  for (std::int64_t row = top; row <= bottom; ++row)
    for (const Blob* blob = &blobs_[row * columns_ + left]; blob <= &blobs_[row * columns_ + right]; ++blob) {
      const double dx = x - blob->x, dy = y - blob->y;
      body(*blob, dx * dx + dy * dy);
    }
}

double Speckle::at(double x, double y) const {
  if (settings_.texture == Texture::gradient) return x;
  double sum = 0;
  if (settings_.texture == Texture::dots) {
    each_near(x, y, kDotRadius * settings_.sigma * settings_.spread, [&](const Blob& dot, double r2) {
      if (r2 < std::pow(kDotRadius * dot.sigma, 2)) sum = -1;
    });
    return sum;
  }
  each_near(x, y, radius_, [&](const Blob& blob, double r2) {
    const double own = blob.sigma * blob.sigma, variance = own + settings_.blur * settings_.blur;
    if (r2 < 30.25 * variance) sum += blob.sign * own / variance * std::exp(-0.5 / variance * r2);
  });
  return sum;
}

std::vector<Blob> Speckle::edges_near(double x, double y, double reach) const {
  std::vector<Blob> edges;
  if (settings_.texture != Texture::dots) return edges;
  bool covered = false;
  each_near(x, y, radius_, [&](const Blob& dot, double r2) {
    const double outside = std::sqrt(r2) - kDotRadius * dot.sigma;
    covered |= outside <= -reach;
    if (outside < reach) edges.push_back(dot);
  });
  if (covered) edges.clear();
  return edges;
}

bool Speckle::covers(const Blob& dot, double x, double y) {
  return std::pow(x - dot.x, 2) + std::pow(y - dot.y, 2) < std::pow(kDotRadius * dot.sigma, 2);
}

}  // namespace dic::synth

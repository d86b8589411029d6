#pragma once

#include <algorithm>
#include <cmath>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <functional>

#include "support/requirements.hpp"

namespace dic::test {

constexpr int kBorder = 40;  // px: interior points are at least this far from every border

struct Displacement {
  double u, v;
};
using Truth = std::function<Displacement(double x, double y)>;

/// Running mean and mean square.
struct Moments {
  std::int64_t n = 0;
  double sum = 0, square = 0;
  void add(double value) {
    ++n;
    sum += value;
    square += value * value;
  }
  double mean() const { return sum / static_cast<double>(n); }
  double rms() const { return std::sqrt(square / static_cast<double>(n)); }
  double sd() const { return std::sqrt(std::max(0.0, square / static_cast<double>(n) - mean() * mean())); }
};

/// Errors of the points of a field that a filter selects.
struct Errors {
  Moments u, v, ratio_u, ratio_v;  // errors, px, and ratios of error to predicted standard deviation
  Moments exx, eyy, exy;
  std::int64_t points = 0, ok = 0;
};

inline TrackOptions track_options(int subset = 33, int order = 1, int step = 5) {
  TrackOptions options;
  options.refine.subset = subset;
  options.refine.order = order;
  options.step = step;
  options.device = "cpu";
  return options;
}

/// An image and its grid, which give the position of a field's points.
struct Scene {
  Grid grid;
  int width, height;
  bool interior(int i, int j) const {
    const int x = grid.x(i), y = grid.y(j);
    return x >= kBorder && x <= width - 1 - kBorder && y >= kBorder && y <= height - 1 - kBorder;
  }
};

/// Calls body(i, j, node) for every node that `takes` accepts.
template <typename Takes, typename Body>
void each_node(const Scene& scene, const Takes& takes, const Body& body) {
  for (int j = 0; j < scene.grid.ny; ++j)
    for (int i = 0; i < scene.grid.nx; ++i)
      if (takes(i, j)) body(i, j, static_cast<std::int64_t>(j) * scene.grid.nx + i);
}

inline Errors interior_errors(const Scene& scene, const Field& field, const Truth& truth) {
  Errors out;
  each_node(
      scene, [&](int i, int j) { return scene.interior(i, j); },
      [&](int i, int j, std::int64_t n) {
        ++out.points;
        if (field.status[n] != Status::ok) return;
        ++out.ok;
        const auto [u, v] = truth(scene.grid.x(i), scene.grid.y(j));
        out.u.add(field.u[n] - u);
        out.v.add(field.v[n] - v);
        out.ratio_u.add((field.u[n] - u) / field.sigma_u[n]);
        out.ratio_v.add((field.v[n] - v) / field.sigma_v[n]);
        if (std::isnan(field.strain.exx[n])) return;
        out.exx.add(field.strain.exx[n]);
        out.eyy.add(field.strain.eyy[n]);
        out.exy.add(field.strain.exy[n]);
      });
  return out;
}

/// Tracks one current image against a reference.
struct Measured {
  Scene scene;
  Field field;
};
inline Measured track_pair(const TrackOptions& options, const Image& reference, const Image& current) {
  Tracker tracker(options, reference);
  Field field = tracker.track(current).field;
  return {{tracker.grid(), reference.width(), reference.height()}, std::move(field)};
}

}  // namespace dic::test

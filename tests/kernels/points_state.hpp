#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <dic/kernels/points.hpp>
#include <random>
#include <vector>

#include "kernels/device_data.hpp"

/// Points of a synthetic frame: a smooth displacement field with lost regions, wrong islands, holes in the
/// ROI, and subsets that are cut or cannot be tracked.
namespace dic::test {

/// `count` poisoned elements of device memory, between guard elements that must not change.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(std::size_t count, const kernels::Stream& stream) : count_(count) {
    memory_.reserve(bytes());
    kernels::fill(memory_.data(), device_poison, bytes(), stream.handle());
  }
  DeviceArray(const std::vector<T>& values, const kernels::Stream& stream)
      : DeviceArray(values.size(), stream) {
    if (!values.empty()) kernels::upload(data(), values.data(), values.size() * sizeof(T), stream);
    stream.synchronize("uploading");
  }

  T* data() const { return static_cast<T*>(memory_.data()) + guard; }

  std::vector<T> values(const kernels::Stream& stream) const {
    std::vector<std::uint8_t> all(bytes());
    kernels::download(all.data(), memory_.data(), bytes(), stream);
    stream.synchronize("downloading");
    const std::size_t first = guard * sizeof(T), end = bytes() - first;
    std::size_t changed = 0;
    for (std::size_t k = 0; k < bytes(); ++k) changed += (k < first || k >= end) && all[k] != device_poison;
    EXPECT_EQ(changed, 0u) << "bytes outside the result were written";
    std::vector<T> out(count_);
    if (count_ > 0) std::memcpy(static_cast<void*>(out.data()), all.data() + first, count_ * sizeof(T));
    return out;
  }
  T value(const kernels::Stream& stream) const { return values(stream).at(0); }

 private:
  static constexpr std::size_t guard = 4;
  std::size_t bytes() const { return (count_ + 2 * guard) * sizeof(T); }

  std::size_t count_;
  kernels::DeviceBuffer memory_;
};

struct PointsCase {
  int nx, ny;
  bool holes = true;
  bool lost = true;  ///< regions and single points that are not measured

  friend std::ostream& operator<<(std::ostream& out, const PointsCase& c) {
    return out << c.nx << " x " << c.ny << (c.holes ? ", holes" : "") << (c.lost ? ", lost points" : "");
  }
};

struct PointsState {
  static constexpr int step = 5, radius = 10, margin = 8;
  int nx, ny, width, height;
  std::vector<std::int32_t> point_at, node_of;
  std::vector<int> x, y;
  std::vector<kernels::PreparedSubset> subsets;
  std::vector<kernels::TrackedPoint> tracked;
  std::vector<kernels::PointStart> starts;

  PointsState(const PointsCase& c, unsigned seed)
      : nx(c.nx), ny(c.ny), width(c.nx * step + 2 * margin), height(c.ny * step + 2 * margin), random_(seed) {
    place(c);
    for (int i = 0; i < count(); ++i) {
      subsets.push_back(subset(i));
      tracked.push_back(measured(i));
      starts.push_back(start());
    }
    for (int k = 0; k < 1 + count() / 100; ++k) displace_block();
    if (!c.lost) return;
    for (int k = 0; k < 1 + count() / 400; ++k) lose_block();
    for (auto& point : tracked)
      if (chance(0.1)) lose(point);
  }

  int count() const { return static_cast<int>(node_of.size()); }

  /// The neighbours of a point on the grid.
  std::vector<int> neighbours(int point) const {
    std::vector<int> out;
    const int row = node_of[point] / nx, column = node_of[point] % nx;
    for (const int j : {row - 1, row, row + 1})
      for (const int i : {column - 1, column, column + 1}) {
        if (j < 0 || j >= ny || i < 0 || i >= nx || (i == column && j == row)) continue;
        if (point_at[j * nx + i] >= 0) out.push_back(point_at[j * nx + i]);
      }
    return out;
  }

  double uniform(double from, double to) { return std::uniform_real_distribution<double>(from, to)(random_); }
  int integer(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool chance(double share) { return uniform(0, 1) < share; }

  kernels::RelativeShape shape() {
    kernels::RelativeShape s;
    for (int k = 0; k < 6; ++k) {
      const double size = k == 0 ? 0.5 : k < 3 ? 0.02 : 1e-4;
      s.u[k] = static_cast<float>(uniform(-size, size));
      s.v[k] = static_cast<float>(uniform(-size, size));
    }
    return s;
  }

 private:
  void place(const PointsCase& c) {
    std::vector<char> inside(static_cast<std::size_t>(nx) * ny, 1);
    for (int k = 0; c.holes && k < nx * ny / 200; ++k) {
      const int x0 = integer(0, nx - 1), y0 = integer(0, ny - 1), w = integer(1, 8), h = integer(1, 8);
      for (int j = y0; j < std::min(ny, y0 + h); ++j)
        for (int i = x0; i < std::min(nx, x0 + w); ++i) inside[j * nx + i] = 0;
    }
    for (int node = 0; node < nx * ny; ++node) {
      point_at.push_back(inside[node] ? count() : -1);
      if (!inside[node]) continue;
      node_of.push_back(node);
      x.push_back(margin + node % nx * step + integer(0, 1));  // material points lie between pixels
      y.push_back(margin + node / nx * step + integer(0, 1));
    }
  }

  kernels::PreparedSubset subset(int i) {
    const Status status = chance(0.03) ? Status::flat : chance(0.03) ? Status::masked : Status::ok;
    kernels::PreparedSubset s;
    s.x = x[i];
    s.y = y[i];
    s.left = static_cast<std::int16_t>(-std::min(radius, x[i]));
    s.right = static_cast<std::int16_t>(std::min(radius, width - 1 - x[i]));
    s.top = static_cast<std::int16_t>(-std::min(radius, y[i]));
    s.bottom = static_cast<std::int16_t>(std::min(radius, height - 1 - y[i]));
    s.weighted = chance(0.05);
    s.status = status;
    return s;
  }

  kernels::TrackedPoint measured(int i) {
    kernels::TrackedPoint point;
    point.u = static_cast<int>(std::lround(12 + 0.02 * x[i]));
    point.v = static_cast<int>(std::lround(-3 + 0.01 * y[i]));
    kernels::RefineResult& r = point.result;
    r.shape = shape();
    r.zncc = static_cast<float>(chance(0.02) ? 0.875 : uniform(0.6, 0.95));  // some values are equal
    r.residual_sd = static_cast<float>(uniform(0.5, 4));
    r.unit_sigma_u = static_cast<float>(uniform(0.001, 0.01));
    r.unit_sigma_v = static_cast<float>(uniform(0.001, 0.01));
    r.iterations = static_cast<std::int16_t>(integer(1, 9));
    r.status = Status::ok;
    if (subsets[i].status != Status::ok) {
      r.status = subsets[i].status;
      r.iterations = 0;
    }
    return point;
  }

  kernels::PointStart start() {
    kernels::PointStart s{integer(-20, 20), integer(-20, 20), shape(), static_cast<float>(uniform(0, 1))};
    if (chance(0.1)) s.shape.u[0] = 0.5f, s.shape.v[0] = -0.5f;
    if (chance(0.1)) s.score = -1;
    return s;
  }

  void lose(kernels::TrackedPoint& point) {
    if (point.result.status != Status::ok) return;
    point.result.status = chance(0.5) ? Status::low_correlation : Status::not_converged;
    if (chance(0.3)) point.result.iterations = 0;
  }

  template <typename Change>
  void change_block(int largest, const Change& change) {
    const int x0 = integer(0, nx - 1), y0 = integer(0, ny - 1);
    const int w = integer(1, largest), h = integer(1, largest);
    for (int j = y0; j < std::min(ny, y0 + h); ++j)
      for (int i = x0; i < std::min(nx, x0 + w); ++i)
        if (const int point = point_at[j * nx + i]; point >= 0) change(tracked[point]);
  }
  /// Makes a block of points that agree only among themselves.
  void displace_block() {
    const int by = integer(3, 9);
    change_block(5, [&](kernels::TrackedPoint& point) { point.u += by; });
  }
  void lose_block() {
    change_block(20, [&](kernels::TrackedPoint& point) { lose(point); });
  }

  std::mt19937 random_;
};

/// The points of a state in device memory.
struct DevicePoints {
  DeviceArray<std::int32_t> point_at, node_of;
  DeviceArray<int> x, y;
  DeviceArray<kernels::PreparedSubset> subsets;
  kernels::GridPoints points;

  DevicePoints(const PointsState& s, const kernels::Stream& stream)
      : point_at(s.point_at, stream),
        node_of(s.node_of, stream),
        x(s.x, stream),
        y(s.y, stream),
        subsets(s.subsets, stream),
        points{s.nx, s.ny, point_at.data(), node_of.data(), x.data(), y.data(), subsets.data(), s.count()} {
    points.image = {s.width, s.height};
  }
};

/// A list of at most `count` points in device memory.
struct DeviceList {
  DeviceArray<std::int32_t> points, count;

  DeviceList(std::size_t most, const kernels::Stream& stream) : points(most, stream), count(1, stream) {}
  kernels::PointList list() const { return {points.data(), count.data()}; }

  /// The list in ascending order.
  std::vector<std::int32_t> sorted(const kernels::Stream& stream) const {
    std::vector<std::int32_t> all = points.values(stream);
    const std::int32_t n = count.value(stream);
    if (n < 0 || n > std::ssize(all)) {
      ADD_FAILURE() << "a list of " << n << " points";
      return {};
    }
    all.resize(n);
    std::sort(all.begin(), all.end());
    return all;
  }
};

}  // namespace dic::test

#include <dic/kernels/follow_peaks.hpp>
#include <dic/kernels/points.hpp>
#include <limits>

#include "kernels/points_state.hpp"
#include "kernels/points_support.hpp"
#include "support/gpu_test.hpp"

// Tests the conversion of points to a field, and their tracking into a later reference.
namespace dic::test {
namespace {

using kernels::Stream;
using kernels::TrackedPoint;
using track::MaterialPoint;

/// Sources found breadth first from all measured points; the first of several neighbours in the previous wave
/// decides.
std::vector<int> naive_sources(const PointsState& s) {
  std::vector<int> source(s.count(), -1);
  for (int i = 0; i < s.count(); ++i)
    if (measured(s, i)) source[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<int> before = source;
    for (int i = 0; i < s.count(); ++i)
      for (const int n : s.neighbours(i))
        if (source[i] < 0 && before[n] >= 0) source[i] = before[n], changed = true;
  }
  return source;
}

/// True if a part of the pixels [at - r, at + r] that was inside [0, size) moves out of it by at least half a
/// pixel.
bool naive_leaves(int at, int size, double displacement) {
  const int r = PointsState::radius;
  const double first = std::max(0, at - r) + displacement, last = std::min(size - 1, at + r) + displacement;
  return first < -0.5 || last > size - 0.5;
}

double first_order_at(std::int32_t whole, const float* c, double dx, double dy) {
  return whole + (double{c[0]} + c[1] * dx + c[2] * dy);
}

void check_explained(PointsState& s, const DevicePoints& device, const Stream& stream, int& left) {
  std::vector<TrackedPoint> want = s.tracked;
  const std::vector<int> sources = naive_sources(s);
  for (int i = 0; i < s.count(); ++i) {
    const int a = sources[i];
    if (a < 0 || a == i || !trackable(s, i)) continue;
    const TrackedPoint& from = s.tracked[a];
    const double dx = s.x[i] - s.x[a], dy = s.y[i] - s.y[a];
    if (!naive_leaves(s.x[i], s.width, first_order_at(from.u, from.result.shape.u, dx, dy)) &&
        !naive_leaves(s.y[i], s.height, first_order_at(from.v, from.result.shape.v, dx, dy)))
      continue;
    want[i].result.status = Status::out_of_image;
    ++left;
  }
  const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
  const DeviceArray<std::uint8_t> workspace(kernels::classify_lost_workspace_bytes(s.count()), stream);
  kernels::launch_classify_lost(device.points, tracked.data(), PointsState::radius, s.width, s.height,
                                workspace.data(), stream.handle());
  EXPECT_TRUE(same_bytes(tracked.values(stream), want));
}

TEST_F(Points, ThoseThatLeftTheImageAreToldApart) {
  int left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    check_explained(s, device, stream, left);
  });
  EXPECT_GT(left, 100);
}

TEST_F(Points, FewMeasuredPointsExplainAllOthers) {
  int left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (auto& point : s.tracked)
      if (point.result.status == Status::ok) point.result.status = Status::diverged;
    check_explained(s, device, stream, left);  // there are no measured points
    for (int k = 0; k < 3; ++k) {
      const int i = s.integer(0, s.count() - 1);
      if (trackable(s, i)) s.tracked[i].result.status = Status::ok;
    }
    check_explained(s, device, stream, left);
  });
  EXPECT_GT(left, 500);
}

double naive_noise(const PointsState& s, const track::NoiseGains& gains) {
  std::vector<double> all;
  for (int i = 0; i < s.count(); ++i) {
    if (!measured(s, i)) continue;
    const TrackedPoint& p = s.tracked[i];
    all.push_back(track::noise_from_residual(gains, kernels::joined(p.u, p.v, p.result.shape),
                                             p.result.residual_sd, PointsState::radius));
  }
  std::sort(all.begin(), all.end());
  return all.empty() ? 0 : all[all.size() / 2];
}

TEST_F(Points, TheNoiseIsAMedian) {
  track::NoiseGains gains;
  for (int k = 0; k <= 32; ++k) gains.gain[k] = 1 - 0.8F * static_cast<float>(k) / 64;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (const bool some : {true, false}) {
      for (auto& point : s.tracked)
        if (!some) point.result.status = Status::diverged;
      const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
      const DeviceArray<std::uint8_t> workspace(kernels::noise_workspace_bytes(s.count()), stream);
      const DeviceArray<double> noise(1, stream);
      kernels::launch_estimate_noise(device.points, tracked.data(), gains, PointsState::radius, noise.data(),
                                     workspace.data(), stream.handle());
      const double want = naive_noise(s, gains);
      EXPECT_NEAR(noise.value(stream), want, 1e-6 * want);
    }
  });
}

TEST_F(Points, EqualResidualsAndZeroHaveAMedian) {
  const Stream stream;
  PointsState s({40, 40, false, false}, 3);
  for (const float residual : {0.0f, 1.5f}) {
    for (auto& point : s.tracked) point.result.residual_sd = residual;
    const DevicePoints device(s, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> workspace(kernels::noise_workspace_bytes(s.count()), stream);
    const DeviceArray<double> noise(1, stream);
    kernels::launch_estimate_noise(device.points, tracked.data(), {}, PointsState::radius, noise.data(),
                                   workspace.data(), stream.handle());
    EXPECT_EQ(noise.value(stream), residual);  // the interpolation has no gain
  }
}

struct DeviceField {
  DeviceArray<double> u, v;
  DeviceArray<float> zncc, sigma_u, sigma_v;
  DeviceArray<Status> status;
  DeviceArray<std::int16_t> iterations;
  kernels::FieldArrays arrays;

  DeviceField(std::size_t nodes, const Stream& stream)
      : u(nodes, stream),
        v(nodes, stream),
        zncc(nodes, stream),
        sigma_u(nodes, stream),
        sigma_v(nodes, stream),
        status(nodes, stream),
        iterations(nodes, stream) {
    arrays.u = u.data(), arrays.v = v.data(), arrays.zncc = zncc.data();
    arrays.sigma_u = sigma_u.data(), arrays.sigma_v = sigma_v.data();
    arrays.status = status.data(), arrays.iterations = iterations.data();
  }
};

/// Expects near values; NaNs are equal.
void expect_near(double got, double want, double tolerance) {
  if (std::isnan(want))
    ASSERT_TRUE(std::isnan(got)) << got;
  else
    ASSERT_NEAR(got, want, tolerance);
}

/// Sigma along one axis of a point with `noise` in both images and exact gradients: from the inverse of its
/// matrix, with the current image's pixels `density` times as dense, mapped by F (a = dx/dX, b = dx/dY). In a
/// later reference, the noise that two steps share counts once.
double naive_sigma(double noise, double own, double other, double a, double b, double density,
                   double variance, double mapped) {
  const double step = noise * noise * (1 + density) / 2 * (a * a * own * own + b * b * other * other);
  const double least = 1e-8;
  if (variance == 0) return std::sqrt(step + least);
  return std::sqrt(std::max(mapped, step) + 0.67 / (2 * PointsState::radius + 1) * step + least);
}

void check_field(const PointsState& s, const DevicePoints& device, const std::vector<MaterialPoint>& material,
                 const Stream& stream) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), noise = 2.5;
  const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
  const DeviceArray<MaterialPoint> device_material(material, stream);
  track::NoiseModel model;
  model.given = noise;
  model.radius = PointsState::radius;
  model.most_share = 0.5;
  const DeviceField field(s.point_at.size(), stream);
  const DeviceArray<std::uint8_t> workspace(kernels::fill_field_workspace_bytes(device.points), stream);
  kernels::launch_fill_field(device.points, tracked.data(),
                             material.empty() ? nullptr : device_material.data(), model, field.arrays,
                             workspace.data(), stream.handle());
  const auto u = field.u.values(stream), v = field.v.values(stream);
  const auto zncc = field.zncc.values(stream), sigma_u = field.sigma_u.values(stream),
             sigma_v = field.sigma_v.values(stream);
  const auto status = field.status.values(stream);
  const auto iterations = field.iterations.values(stream);
  for (std::size_t node = 0; node < s.point_at.size(); ++node) {
    const int i = s.point_at[node];
    ASSERT_EQ(status[node], i < 0 ? Status::masked : s.tracked[i].result.status);
    ASSERT_EQ(iterations[node], i < 0 ? 0 : s.tracked[i].result.iterations);
    const bool ok = i >= 0 && measured(s, i);
    const TrackedPoint p = ok ? s.tracked[i] : TrackedPoint{};
    const MaterialPoint m = ok && !material.empty() ? material[i] : MaterialPoint{};
    ASSERT_NO_FATAL_FAILURE(
        expect_near(u[node], ok ? m.u + value_at(p.u, p.result.shape.u, m.dx, m.dy) : nan, 1e-12));
    ASSERT_NO_FATAL_FAILURE(
        expect_near(v[node], ok ? m.v + value_at(p.v, p.result.shape.v, m.dx, m.dy) : nan, 1e-12));
    ASSERT_NO_FATAL_FAILURE(expect_near(zncc[node], ok ? p.result.zncc : nan, 0));
    const auto& r = p.result;
    const double ux = r.shape.u[1], uy = r.shape.u[2], vx = r.shape.v[1], vy = r.shape.v[2];
    const double density = 1 / std::abs((1 + ux) * (1 + vy) - uy * vx);
    const double mapped_u = (1 + ux) * (1 + ux) * m.variance_u + uy * uy * m.variance_v;
    const double mapped_v = (1 + vy) * (1 + vy) * m.variance_v + vx * vx * m.variance_u;
    const double want_u =
        naive_sigma(noise, r.unit_sigma_u, r.unit_sigma_v, 1 + ux, uy, density, m.variance_u, mapped_u);
    const double want_v =
        naive_sigma(noise, r.unit_sigma_v, r.unit_sigma_u, 1 + vy, vx, density, m.variance_v, mapped_v);
    ASSERT_NO_FATAL_FAILURE(expect_near(sigma_u[node], ok ? want_u : nan, 1e-6));
    ASSERT_NO_FATAL_FAILURE(expect_near(sigma_v[node], ok ? want_v : nan, 1e-6));
  }
}

TEST_F(Points, BecomeAField) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    check_field(s, device, {}, stream);
    std::vector<MaterialPoint> material(s.count());
    for (MaterialPoint& m : material)
      m = {s.uniform(-50, 50),
           s.uniform(-50, 50),
           s.uniform(-0.5, 0.5),
           s.uniform(-0.5, 0.5),
           static_cast<float>(s.uniform(0, 1e-4)),
           static_cast<float>(s.uniform(0, 1e-4)),
           Status::ok};
    check_field(s, device, material, stream);
  });
}

/// A field measured in an image as large as the grid: some points left it, some are outliers.
struct FieldState {
  std::vector<double> u, v;
  std::vector<float> sigma_u, sigma_v;
  std::vector<Status> status;

  explicit FieldState(PointsState& s) {
    for (std::size_t node = 0; node < s.point_at.size(); ++node) {
      const bool ok = s.point_at[node] >= 0 && s.chance(0.9);
      constexpr double nan = std::numeric_limits<double>::quiet_NaN();
      u.push_back(ok ? s.uniform(-30, 30) : nan);
      v.push_back(ok ? s.chance(0.05) ? 2.5 : s.uniform(-30, 30) : nan);
      sigma_u.push_back(static_cast<float>(s.uniform(0.001, 0.1)));
      sigma_v.push_back(static_cast<float>(s.uniform(0.001, 0.1)));
      status.push_back(ok ? s.chance(0.1) ? Status::outlier : Status::ok : Status::low_correlation);
    }
  }
};

/// The state of point i, written without the code under test.
MaterialPoint naively_followed(const PointsState& s, const FieldState& field, int i, int& x, int& y) {
  const int node = s.node_of[i];
  MaterialPoint m;
  if (field.status[node] == Status::low_correlation) {
    m.status = Status::low_correlation;
    return m;
  }
  m.u = field.u[node], m.v = field.v[node];
  m.variance_u = field.sigma_u[node] * field.sigma_u[node];
  m.variance_v = field.sigma_v[node] * field.sigma_v[node];
  const double to_x = s.x[i] + m.u, to_y = s.y[i] + m.v;
  x = static_cast<int>(to_x < 0 ? std::ceil(to_x - 0.5) : std::floor(to_x + 0.5));
  y = static_cast<int>(to_y < 0 ? std::ceil(to_y - 0.5) : std::floor(to_y + 0.5));
  m.dx = to_x - x, m.dy = to_y - y;
  const int clamped_x = std::min(std::max(x, 0), s.width - 1),
            clamped_y = std::min(std::max(y, 0), s.height - 1);
  if (x != clamped_x || y != clamped_y) m.status = Status::out_of_image;
  x = clamped_x, y = clamped_y;
  return m;
}

std::vector<std::uint8_t> naively_moved(const PointsState& s, const std::vector<MaterialPoint>& material,
                                        const std::vector<std::uint8_t>& roi) {
  std::vector<std::uint8_t> moved(roi.size(), 0);
  constexpr int margin = PointsState::margin, step = PointsState::step;
  for (int y = 0; y < s.height; ++y)
    for (int x = 0; x < s.width; ++x) {
      // Index of the nearest node; at half a step, rounded down, the right one.
      const auto nearest = [](int offset, int n) {
        return std::min(std::max(static_cast<int>(std::floor((offset + step / 2) / double{step})), 0), n - 1);
      };
      const int point = s.point_at[nearest(y - margin, s.ny) * s.nx + nearest(x - margin, s.nx)];
      if (!roi[y * s.width + x] || point < 0 || material[point].status != Status::ok) continue;
      for (const int b : {0, 1})
        for (const int a : {0, 1}) {
          const double to_x = std::floor(x + material[point].u) + a,
                       to_y = std::floor(y + material[point].v) + b;
          if (to_x >= 0 && to_y >= 0 && to_x < s.width && to_y < s.height)
            moved[static_cast<int>(to_y) * s.width + static_cast<int>(to_x)] = 255;
        }
    }
  return moved;
}

TEST_F(Points, AndTheirRoiAreFollowedIntoALaterReference) {
  std::int64_t left = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const FieldState state(s);
    const DeviceArray<double> u(state.u, stream), v(state.v, stream);
    const DeviceArray<float> sigma_u(state.sigma_u, stream), sigma_v(state.sigma_v, stream);
    const DeviceArray<Status> status(state.status, stream);
    kernels::FieldArrays field;
    field.u = u.data(), field.v = v.data(), field.sigma_u = sigma_u.data(), field.sigma_v = sigma_v.data();
    field.status = status.data();
    const DeviceArray<int> x(s.count(), stream), y(s.count(), stream);
    const DeviceArray<MaterialPoint> material(s.count(), stream);
    kernels::launch_follow_points(device.points, field, {s.width, s.height},
                                  {x.data(), y.data(), material.data()}, stream.handle());
    const auto got = material.values(stream);
    const auto got_x = x.values(stream), got_y = y.values(stream);
    for (int i = 0; i < s.count(); ++i) {
      int want_x = s.x[i], want_y = s.y[i];
      const MaterialPoint want = naively_followed(s, state, i, want_x, want_y);
      ASSERT_EQ(got[i].status, want.status);
      ASSERT_EQ(got_x[i], want_x);
      ASSERT_EQ(got_y[i], want_y);
      left += want.status == Status::out_of_image;
      if (want.status == Status::low_correlation) continue;
      ASSERT_EQ(got[i].u, want.u);
      ASSERT_EQ(got[i].v, want.v);
      ASSERT_EQ(got[i].dx, want.dx);
      ASSERT_EQ(got[i].dy, want.dy);
      ASSERT_EQ(got[i].variance_u, want.variance_u);
      ASSERT_EQ(got[i].variance_v, want.variance_v);
    }

    std::vector<std::uint8_t> roi(static_cast<std::size_t>(s.width) * s.height);
    for (std::uint8_t& pixel : roi) pixel = s.chance(0.7) ? 255 : 0;
    const DeviceArray<std::uint8_t> device_roi(roi, stream), moved(roi.size(), stream);
    kernels::launch_move_roi(device.points,
                             {PointsState::margin, PointsState::margin, PointsState::step, s.nx, s.ny},
                             {device_roi.data(), ScalarType::u8, s.width, s.height, s.width}, material.data(),
                             moved.data(), stream.handle());
    EXPECT_EQ(moved.values(stream), naively_moved(s, got, roi));

    const DeviceArray<kernels::NodeCounts> counts(1, stream);
    kernels::launch_count_nodes(field, static_cast<std::int64_t>(state.status.size()), counts.data(),
                                stream.handle());
    const auto lost = std::ranges::count(state.status, Status::low_correlation);
    EXPECT_EQ(counts.value(stream).measured, std::ssize(state.status) - lost);
    EXPECT_EQ(counts.value(stream).lost, lost);
  });
  EXPECT_GT(left, 500);
}

}  // namespace
}  // namespace dic::test

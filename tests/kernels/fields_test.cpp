#include <algorithm>
#include <cmath>
#include <dic/kernels/fields.hpp>
#include <random>
#include <span>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"
#include "support/strain_truth.hpp"

// Tests the outlier test and strain on the device against their definitions.
namespace dic::test {
namespace {

using kernels::Stream;

/// A field on the device, with values to be read and a poisoned strain.
class DeviceField {
 public:
  DeviceField(const Grid& grid, const Field& field)
      : nodes_(static_cast<int>(grid.nodes())),
        grid_{grid.nx, grid.ny, grid.step, nullptr},
        inside_(nodes_, 1, grid.inside, stream_),
        u_(nodes_, 1, {field.u.begin(), field.u.end()}, stream_),
        v_(nodes_, 1, {field.v.begin(), field.v.end()}, stream_),
        sigma_u_(nodes_, 1, {field.sigma_u.begin(), field.sigma_u.end()}, stream_),
        sigma_v_(nodes_, 1, {field.sigma_v.begin(), field.sigma_v.end()}, stream_),
        status_(nodes_, 1, bytes_of(field.status), stream_),
        workspace_(static_cast<int>(kernels::fields_workspace_bytes(grid_) / sizeof(std::uint32_t)), 1,
                   stream_) {
    grid_.inside = inside_.data();
    for (int k = 0; k < 9; ++k) strain_.emplace_back(nodes_, 1, stream_);
  }

  NodeValues<Status> mark_outliers(const OutlierOptions& options) {
    kernels::launch_mark_outliers(grid_, arrays(), options, workspace_.data(), stream_.handle());
    NodeValues<Status> all(nodes_);
    std::ranges::transform(status_.values(stream_), all.begin(),
                           [](std::uint8_t status) { return static_cast<Status>(status); });
    workspace_.values(stream_);
    return all;
  }
  StrainField strain(const StrainOptions& options, const MeasuredSubsets& subsets = {}) {
    kernels::launch_strain(grid_, arrays(), options, subsets, workspace_.data(), stream_.handle());
    workspace_.values(stream_);
    const auto values = [&](int k) { return NodeValues<float>(strain_[k].values(stream_)); };
    return {values(0), values(1), values(2), values(3), values(4),
            values(5), values(6), values(7), values(8)};
  }

 private:
  static std::vector<std::uint8_t> bytes_of(const NodeValues<Status>& status) {
    std::vector<std::uint8_t> bytes;
    for (const Status s : status) bytes.push_back(static_cast<std::uint8_t>(s));
    return bytes;
  }
  kernels::FieldArrays arrays() const {
    return {.u = u_.data(),
            .v = v_.data(),
            .sigma_u = sigma_u_.data(),
            .sigma_v = sigma_v_.data(),
            .status = reinterpret_cast<Status*>(status_.data()),
            .exx = strain_[0].data(),
            .eyy = strain_[1].data(),
            .exy = strain_[2].data(),
            .e1 = strain_[3].data(),
            .e2 = strain_[4].data(),
            .von_mises = strain_[5].data(),
            .sigma_exx = strain_[6].data(),
            .sigma_eyy = strain_[7].data(),
            .sigma_exy = strain_[8].data()};
  }

  Stream stream_;
  int nodes_;
  kernels::DeviceGrid grid_;
  DeviceRows<std::uint8_t> inside_;
  DeviceRows<double> u_, v_;
  DeviceRows<float> sigma_u_, sigma_v_;
  DeviceRows<std::uint8_t> status_;
  std::vector<DeviceRows<float>> strain_;
  DeviceRows<std::uint32_t> workspace_;
};

/// Defects of a field, as fractions of its nodes.
struct Damage {
  double lost = 0, wrong = 0;
  bool hole = false;  ///< a round hole in the ROI
};

/// A smooth field with large displacements, rotation and noise. Lost nodes are NaN, like those outside.
Field damaged_field(Grid& grid, const Damage& damage, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(0, 1);
  for (int j = 0; damage.hole && j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      if (std::hypot(i - 0.6 * grid.nx, j - 0.4 * grid.ny) < 0.2 * grid.nx) grid.inside[j * grid.nx + i] = 0;
  Field field(grid);  // a copy of the grid
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const auto k = static_cast<std::size_t>(j) * grid.nx + i;
      const double x = grid.x(i), y = grid.y(j), u_noise = any(random), v_noise = any(random);
      if (any(random) < damage.lost) {
        field.status[k] = Status::low_correlation;
        continue;
      }
      field.u[k] = 300 + 0.03 * x + 2 * std::sin(y / 60) + 0.02 * u_noise;
      field.v[k] = -120 + 0.0001 * x * y - 0.02 * x + 0.02 * v_noise;
      field.status[k] = Status::ok;
      field.sigma_u[k] = static_cast<float>(0.01 + 0.002 * u_noise);
      field.sigma_v[k] = static_cast<float>(0.02 + 0.004 * v_noise);
      if (any(random) < damage.wrong) field.u[k] += 4 * (any(random) - 0.5);
    }
  return field;
}

// ---- Strain ----

void expect_strain(const StrainField& got, std::size_t k, const Eigen::Matrix2d& want) {
  constexpr double tolerance = 1e-7;
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d> principal(want);
  ASSERT_NEAR(got.exx[k], want(0, 0), tolerance) << "node " << k;
  ASSERT_NEAR(got.eyy[k], want(1, 1), tolerance) << "node " << k;
  ASSERT_NEAR(got.exy[k], want(0, 1), tolerance) << "node " << k;
  ASSERT_NEAR(got.e1[k], principal.eigenvalues()(1), tolerance) << "node " << k;
  ASSERT_NEAR(got.e2[k], principal.eigenvalues()(0), tolerance) << "node " << k;
  const double von_mises = want(0, 0) * want(0, 0) + want(1, 1) * want(1, 1) - want(0, 0) * want(1, 1) +
                           3 * want(0, 1) * want(0, 1);
  ASSERT_NEAR(got.von_mises[k], std::sqrt(von_mises), tolerance) << "node " << k;
}

/// Compares standard deviations with those of the CPU, which are tested against sums over all pairs of nodes.
/// The part of sigma that windows flatten follows from differences of strains, which may differ by 1e-7 each.
void expect_sigmas(const StrainField& got, const StrainField& want, std::size_t k) {
  constexpr double of_differences = 1e-6;
  for (const auto component : {&StrainField::sigma_exx, &StrainField::sigma_eyy, &StrainField::sigma_exy}) {
    const float value = (want.*component)[k];
    ASSERT_NEAR((got.*component)[k], value, 1e-4 * value + of_differences) << "node " << k;
  }
}

/// Checks every `stride`-th node.
void check_strain(Grid grid, const Damage& damage, StrainOptions options, int stride) {
  SCOPED_TRACE("grid " + std::to_string(grid.nx) + "x" + std::to_string(grid.ny) + " window " +
               std::to_string(options.window));
  Field field = damaged_field(grid, damage, 7);
  for (std::size_t k = 5; k < field.status.size(); k += 41)  // outliers keep values, and get a strain
    if (field.status[k] == Status::ok) field.status[k] = Status::outlier, field.u[k] += 9;
  const MeasuredSubsets subsets{.size = 21, .order = options.window % 4 == 1 ? 1 : 2};
  const StrainField got = DeviceField(grid, field).strain(options, subsets);
  const StrainField on_cpu = compute_strain(field, options, 1, subsets);
  for (std::int64_t k = 0; k < grid.nodes(); k += stride) {
    Eigen::Matrix2d gradient;
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    if (naive_gradient(grid, field, options.window, i, j, gradient)) {
      expect_strain(got, k, strain_tensor(gradient, options.measure));
      expect_sigmas(got, on_cpu, k);
    } else
      for (const auto* values : {&got.exx, &got.eyy, &got.exy, &got.e1, &got.e2, &got.von_mises,
                                 &got.sigma_exx, &got.sigma_eyy, &got.sigma_exy})
        ASSERT_TRUE(std::isnan((*values)[k])) << "node " << k;
    if (testing::Test::HasFatalFailure()) return;
  }
}

using KernelsFields = GpuTest;

TEST_F(KernelsFields, StrainOfCompleteAndDamagedFields) {
  for (const int window : {3, 5, 7, 9, 15, 17, 31})
    for (const Damage& damage : {Damage{}, Damage{.hole = true}, Damage{.lost = 0.15, .hole = true}})
      check_strain(full_grid(83, 45, 7), damage, {.window = window}, window < 10 ? 1 : 5);
}
TEST_F(KernelsFields, StrainOfWideWindows) {
  for (const int window : {33, 63, 65, 127})
    for (const Damage& damage : {Damage{.hole = true}, Damage{.lost = 0.2, .hole = true}})
      check_strain(full_grid(201, 170), damage, {.window = window}, 1009);
}
TEST_F(KernelsFields, StrainOfAllMeasures) {
  for (const StrainMeasure measure : {StrainMeasure::green_lagrange, StrainMeasure::engineering,
                                      StrainMeasure::hencky, StrainMeasure::almansi})
    check_strain(full_grid(40, 33), {.lost = 0.02}, {.window = 5, .measure = measure}, 1);
}
TEST_F(KernelsFields, StrainOfSmallGrids) {
  for (const auto& [nx, ny] : {std::pair{1, 1}, {1, 20}, {20, 1}, {3, 2}, {5, 5}, {64, 8}, {65, 9}, {0, 0}})
    check_strain(full_grid(nx, ny), {}, {.window = 5}, 1);
}

/// Rows of walls make a long winding path through the window, whose nodes are connected only step by step.
TEST_F(KernelsFields, StrainFollowsWindingPaths) {
  Grid grid = full_grid(140, 139);
  Field field = damaged_field(grid, {}, 3);
  for (int j = 1; j < grid.ny; j += 4)
    for (int i = 0; i < grid.nx; ++i)
      if (i != (j / 4 % 2 ? 2 : grid.nx - 3)) field.status[j * grid.nx + i] = Status::flat;
  for (const int window : {5, 15, 63, 127}) {
    const StrainField got = DeviceField(grid, field).strain({.window = window});
    for (std::int64_t k = 3; k < grid.nodes(); k += 499) {
      Eigen::Matrix2d gradient;
      const bool exists = naive_gradient(grid, field, window, static_cast<int>(k) % grid.nx,
                                         static_cast<int>(k) / grid.nx, gradient);
      ASSERT_EQ(!std::isnan(got.exx[k]), exists) << "node " << k << " window " << window;
      if (exists) expect_strain(got, k, strain_tensor(gradient, StrainMeasure::green_lagrange));
    }
  }
}

TEST_F(KernelsFields, StrainIsRepeatable) {
  Grid grid = full_grid(301, 203);
  const Field field = damaged_field(grid, {.lost = 0.1, .hole = true}, 5);
  DeviceField device(grid, field);
  const StrainField first = device.strain({.window = 7}), again = device.strain({.window = 7});
  for (std::size_t k = 0; k < first.exx.size(); ++k) {
    ASSERT_TRUE(first.exx[k] == again.exx[k] || (std::isnan(first.exx[k]) && std::isnan(again.exx[k])));
    ASSERT_TRUE(first.e2[k] == again.e2[k] || (std::isnan(first.e2[k]) && std::isnan(again.e2[k])));
  }
}

// ---- Outliers ----

float median(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// Normalized residual of one component as <dic/fields.hpp> describes it; NaN if a point has too few
/// neighbours.
template <typename Exists>
float naive_residual(std::span<const double> values, const Grid& grid, int i, int j, float floor,
                     const Exists& exists) {
  const auto at = [&](int x, int y) {
    return static_cast<float>(values[static_cast<std::size_t>(y) * grid.nx + x]);
  };
  std::vector<float> slopes_x, slopes_y;
  const auto add_slope = [&](std::vector<float>& slopes, int x0, int y0, int x1, int y1) {
    if (!exists(x0, y0) || !exists(x1, y1)) return;
    slopes.push_back((at(x1, y1) - at(x0, y0)) / static_cast<float>(x1 - x0 + y1 - y0));
  };
  for (const int side : {-1, 1}) {
    for (const int from : {-1, 0}) {
      add_slope(slopes_x, i + from, j + side, i + from + 1, j + side);
      add_slope(slopes_y, i + side, j + from, i + side, j + from + 1);
    }
  }
  add_slope(slopes_x, i - 1, j, i + 1, j);
  add_slope(slopes_y, i, j - 1, i, j + 1);
  if (slopes_x.empty() || slopes_y.empty()) return std::nanf("");
  const float slope_x = median(slopes_x), slope_y = median(slopes_y);
  std::vector<float> level;
  for (int y = j - 1; y <= j + 1; ++y)
    for (int x = i - 1; x <= i + 1; ++x)
      if ((x != i || y != j) && exists(x, y))
        level.push_back(at(x, y) - slope_x * static_cast<float>(x - i) - slope_y * static_cast<float>(y - j));
  if (level.size() < 3) return std::nanf("");
  const float expected = median(level);
  for (float& l : level) l = std::abs(l - expected);
  return std::abs(at(i, j) - expected) / (median(level) + floor);
}

/// Distance of a point and its five neighbours on the side (dx, dy) from a plane; infinite if one is missing.
template <typename Exists>
float naive_distance_from_side(std::span<const double> values, const Grid& grid, int i, int j, int dx, int dy,
                               const Exists& exists) {
  bool all = true;
  const auto at = [&](int x, int y) {
    all = all && exists(i + x, j + y);
    return all ? static_cast<float>(values[static_cast<std::size_t>(j + y) * grid.nx + i + x]) : 0;
  };
  const float centre = at(0, 0), middle = at(dx, dy), before = at(dy, -dx), after = at(-dy, dx);
  if (dx != 0 && dy != 0) {
    const float one = at(dx, 0), other = at(0, dy);
    const float beside_one = at(dx, -dy), beside_other = at(-dx, dy);
    if (!all) return INFINITY;
    return std::max({std::abs(centre + middle - one - other), std::abs(beside_one + other - one - centre),
                     std::abs(beside_other + one - other - centre)});
  }
  const float far_before = at(dx + dy, dy - dx), far_after = at(dx - dy, dy + dx);
  if (!all) return INFINITY;
  return std::max({std::abs(before + after - 2 * centre), std::abs(far_before + far_after - 2 * middle),
                   std::abs(centre - middle - before + far_before),
                   std::abs(centre - middle - after + far_after)});
}

/// Statuses after the test; `undecided` receives nodes whose residual is within rounding of the threshold.
NodeValues<Status> naive_outliers(const Grid& grid, const Field& field, const OutlierOptions& options,
                                  std::vector<bool>& undecided) {
  std::vector<bool> exists(field.status.size());
  for (std::size_t k = 0; k < exists.size(); ++k) exists[k] = grid.inside[k] && field.status[k] == Status::ok;
  const auto residual = [&](std::size_t k) {
    const int i = static_cast<int>(k) % grid.nx, j = static_cast<int>(k) / grid.nx;
    const auto there = [&](int x, int y) {
      return x >= 0 && y >= 0 && x < grid.nx && y < grid.ny &&
             exists[static_cast<std::size_t>(y) * grid.nx + x];
    };
    const auto floor = static_cast<float>(options.floor);
    const double size = std::hypot(naive_residual(field.u, grid, i, j, floor, there),
                                   naive_residual(field.v, grid, i, j, floor, there));
    if (std::abs(size - options.threshold) < 1e-3) undecided[k] = true;
    return size;
  };
  const auto fits_a_side = [&](std::size_t k) {
    const int i = static_cast<int>(k) % grid.nx, j = static_cast<int>(k) / grid.nx;
    const auto there = [&](int x, int y) {
      return x >= 0 && y >= 0 && x < grid.nx && y < grid.ny &&
             exists[static_cast<std::size_t>(y) * grid.nx + x];
    };
    const double limit = options.threshold * options.floor;
    bool fits = false;
    for (const auto& [dx, dy] :
         {std::pair{-1, -1}, {0, -1}, {1, -1}, {-1, 0}, {1, 0}, {-1, 1}, {0, 1}, {1, 1}}) {
      const float distance = std::max(naive_distance_from_side(field.u, grid, i, j, dx, dy, there),
                                      naive_distance_from_side(field.v, grid, i, j, dx, dy, there));
      if (std::abs(distance - limit) < 1e-4) undecided[k] = true;
      fits = fits || distance <= limit;
    }
    return fits;
  };
  std::vector<std::size_t> suspects;
  for (std::size_t k = 0; k < exists.size(); ++k)
    if (exists[k] && residual(k) > options.threshold && !fits_a_side(k)) suspects.push_back(k);
  for (const std::size_t k : suspects) exists[k] = false;
  NodeValues<Status> status = field.status;
  for (const std::size_t k : suspects)
    if (!(residual(k) <= options.threshold)) status[k] = Status::outlier;
  return status;
}

TEST_F(KernelsFields, OutliersFollowTheDefinition) {
  for (const Damage& damage : {Damage{.wrong = 0.02}, Damage{.lost = 0.3, .wrong = 0.1, .hole = true},
                               Damage{.lost = 0.7, .wrong = 0.2}}) {
    for (const auto& [nx, ny] : {std::pair{211, 150}, {64, 64}, {33, 2}, {1, 50}, {50, 1}, {3, 3}, {1, 1}}) {
      Grid grid = full_grid(nx, ny);
      const Field field = damaged_field(grid, damage, 11);
      for (const double threshold : {6.0, 1.5}) {
        const OutlierOptions options{.threshold = threshold};
        std::vector<bool> undecided(field.status.size());
        const NodeValues<Status> want = naive_outliers(grid, field, options, undecided);
        const NodeValues<Status> got = DeviceField(grid, field).mark_outliers(options);
        if (nx == 211) {
          ASSERT_GT(std::ranges::count(want, Status::outlier), 20);
        }
        // Rounding may decide whether a point is an outlier; the results of its neighbours then differ, too.
        std::int64_t different = 0;
        for (std::size_t k = 0; k < want.size(); ++k) different += want[k] != got[k];
        EXPECT_LE(different, 9 * std::ranges::count(undecided, true)) << nx << "x" << ny;
      }
    }
  }
}

TEST_F(KernelsFields, OutlierTestSwitchedOff) {
  Grid grid = full_grid(30, 30);
  const Field field = damaged_field(grid, {.wrong = 0.05}, 1);
  EXPECT_EQ(DeviceField(grid, field).mark_outliers({.enabled = false}), field.status);
}

}  // namespace
}  // namespace dic::test

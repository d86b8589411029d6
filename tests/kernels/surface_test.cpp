#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <dic/kernels/surface.hpp>
#include <random>
#include <vector>

#include "kernels/device_data.hpp"
#include "support/gpu_test.hpp"
#include "support/surface_scenes.hpp"

// Tests the kernels of surfaces against naive computations; tests/parity compares whole frames with the CPU.
namespace dic::test {
namespace {

using kernels::Stream;

/// An array in guarded device memory.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, const Stream& stream)
      : rows_(static_cast<int>(values.size()), 1, values, stream) {}
  DeviceArray(std::size_t count, const Stream& stream) : rows_(static_cast<int>(count), 1, stream) {}
  T* data() const { return rows_.data(); }
  std::vector<T> values(const Stream& stream) const { return rows_.values(stream); }

 private:
  DeviceRows<T> rows_;
};

/// Memory without guards for types that are no plain numbers.
template <typename T>
class DeviceObjects {
 public:
  explicit DeviceObjects(std::size_t count) : count_(count) { memory_.reserve<T>(count); }
  DeviceObjects(const std::vector<T>& values, const Stream& stream) : DeviceObjects(values.size()) {
    kernels::upload(memory_.data(), values.data(), count_ * sizeof(T), stream);
  }
  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> values(const Stream& stream) const {
    std::vector<T> all(count_);
    kernels::download(all.data(), memory_.data(), count_ * sizeof(T), stream);
    stream.synchronize("downloading");
    return all;
  }

 private:
  std::size_t count_;
  kernels::DeviceBuffer memory_;
};

std::vector<std::uint8_t> bytes_of(const std::vector<Status>& status) {
  std::vector<std::uint8_t> bytes;
  for (const Status s : status) bytes.push_back(static_cast<std::uint8_t>(s));
  return bytes;
}

class Surface : public GpuTest {};

TEST_F(Surface, BiasOfAQuadraticMotionIsSubtractedAlsoBesideGaps) {
  const Stream stream;
  const BendScene scene;
  const std::size_t n = scene.u.size();
  const DeviceArray<double> u(scene.u, stream), v(scene.v, stream), bias_u(n, stream), bias_v(n, stream);
  const DeviceArray<float> sigma_u(scene.sigma_u, stream), sigma_v(scene.sigma_v, stream),
      responses(scene.responses, stream), maps(4 * n, stream);
  const DeviceArray<float> difference_u(n, stream), difference_v(n, stream), squares(n, stream),
      counts(n, stream);
  const DeviceArray<std::uint8_t> status(bytes_of(scene.status), stream), known(n, stream), usable(n, stream),
      complete(n, stream);
  const DeviceArray<std::int32_t> narrow(n, stream), wide(n, stream), other_narrow(n, stream),
      other_wide(n, stream);
  const DeviceObjects<stereo::RowSums> rows(n);
  const DeviceObjects<stereo::Bends> narrow_bends(n), wide_bends(n);
  stereo::BendJob job{};
  job.grid = scene.nodes(), job.narrow = scene.narrow, job.wide = scene.wide, job.match_order = 1;
  job.noise = {1.2, 1.05, 0.01};
  job.u = u.data(), job.v = v.data(), job.sigma_u = sigma_u.data(), job.sigma_v = sigma_v.data();
  job.status = reinterpret_cast<const Status*>(status.data());
  job.responses = responses.data(), job.maps = maps.data(), job.known = known.data();
  job.usable = usable.data(), job.row_is_complete = complete.data(), job.rows = rows.data();
  job.narrow_bends = narrow_bends.data(), job.wide_bends = wide_bends.data();
  job.narrow_source = narrow.data(), job.wide_source = wide.data();
  job.other_narrow = other_narrow.data(), job.other_wide = other_wide.data();
  job.bias_u = bias_u.data(), job.bias_v = bias_v.data();
  job.difference_u = difference_u.data(), job.difference_v = difference_v.data();
  job.row_squares = squares.data(), job.row_counts = counts.data();
  kernels::launch_subtract_bends(job, stream.handle());
  const auto found_u = u.values(stream), found_v = v.values(stream);
  const auto found_maps = maps.values(stream);
  const auto found_known = known.values(stream);
  for (std::size_t k = 0; k < n; ++k) {
    const bool is_known = scene.is_known(k);
    ASSERT_EQ(found_known[k] != 0, is_known) << k;
    for (int c = 0; c < 4; ++c)
      ASSERT_NEAR(found_maps[4 * k + c], is_known ? scene.maps[k](c / 2, c % 2) : c % 3 == 0, 1e-6) << k;
    ASSERT_NEAR(found_u[k], scene.u[k] - (is_known ? scene.biases[k].x() : 0), 1e-7) << k;
    ASSERT_NEAR(found_v[k], scene.v[k] - (is_known ? scene.biases[k].y() : 0), 1e-7) << k;
  }
}

struct Distances {
  stereo::NodeGrid grid{211, 97, 0, 0, 5};
  std::vector<float> px, sigma;
  std::vector<Status> status;
  std::vector<std::int64_t> known;  ///< nodes that have a distance

  explicit Distances(double lost) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 0.02F);
    for (std::int64_t k = 0; k < grid.nodes(); ++k) {
      const bool is_lost = std::uniform_real_distribution<double>(0, 1)(random) < lost;
      px.push_back(k % 50 == 7 ? NAN : normal(random));
      sigma.push_back(0.02F);
      status.push_back(is_lost ? Status::flat : k % 9 == 0 ? Status::outlier : Status::ok);
      if (!is_lost && k % 50 != 7) known.push_back(k);
    }
  }
};

TEST_F(Surface, SamplesOfDistancesAreThoseOfTheList) {
  const Stream stream;
  for (const double lost : {0.0, 0.3, 0.9, 1.0}) {
    const Distances all(lost);
    const DeviceArray<float> px(all.px, stream), sigma(all.sigma, stream);
    const DeviceArray<std::uint8_t> status(bytes_of(all.status), stream);
    const DeviceObjects<kernels::SampledDistances> samples(1);
    const DeviceArray<std::int32_t> rows(all.grid.ny, stream);
    ASSERT_EQ(kernels::sample_workspace_bytes(all.grid), all.grid.ny * sizeof(std::int32_t));
    const stereo::EpipolarJob job{all.grid, px.data(), sigma.data(), nullptr,
                                  reinterpret_cast<Status*>(status.data())};
    kernels::launch_sample_distances(job, samples.data(), rows.data(), stream.handle());
    const auto found = samples.values(stream);
    rows.values(stream);
    const std::int64_t count = std::ssize(all.known);
    ASSERT_EQ(found[0].count, count);
    for (int n = 0; n < std::min<std::int64_t>(count, stereo::kMostSamples); ++n) {
      const std::int64_t k = all.known[count <= stereo::kMostSamples ? n : stereo::sample_number(n, count)];
      ASSERT_EQ(found[0].samples[n].px, double(all.px[k])) << n;
      ASSERT_EQ(found[0].samples[n].x, 2.0 * static_cast<double>(k % all.grid.nx) / all.grid.nx - 1);
      ASSERT_EQ(found[0].samples[n].y, 2.0 * static_cast<double>(k / all.grid.nx) / all.grid.ny - 1);
    }
  }
}

/// Distances of `count` samples whose common part is a polynomial of degree 4 with noise, of which one
/// sample in seven is far off; a constant if the samples are few.
TEST_F(Surface, CommonDistanceIsThePolynomialBehindNoiseAndWrongSamples) {
  constexpr double kNoise = 0.02, kPredicted = 0.01;
  const Stream stream;
  const auto truth = [](double x, double y) {
    return 0.03 - 0.02 * x + 0.05 * y * y - 0.04 * x * x * x * y + 0.03 * y * y * y * y;
  };
  for (const int count : {0, 1, 2, 299, 300, 1000, stereo::kMostSamples, 3 * stereo::kMostSamples}) {
    SCOPED_TRACE(testing::Message() << count << " samples");
    const bool is_constant = count < 300;
    std::mt19937 random(5);
    std::uniform_real_distribution<double> place(-1, 1);
    std::normal_distribution<double> normal(0, kNoise);
    std::vector<kernels::SampledDistances> sampled(1);
    sampled[0].count = count;
    std::vector<float> all;
    for (int n = 0; n < std::min(count, stereo::kMostSamples); ++n) {
      const double x = place(random), y = place(random);
      const double px = (is_constant ? -0.2 : truth(x, y)) + normal(random) + (n % 7 == 3 ? 3 : 0);
      sampled[0].samples[n] = {x, y, px, kPredicted};
      all.push_back(static_cast<float>(px));
    }
    const DeviceObjects<kernels::SampledDistances> samples(sampled, stream);
    const DeviceObjects<stereo::CommonDistance> common(1);
    kernels::launch_fit_common_distance(samples.data(), common.data(), stream.handle());
    const stereo::CommonDistance found = common.values(stream)[0];
    if (count == 0) {
      EXPECT_TRUE(std::isnan(found.coefficients[0]));
      EXPECT_EQ(found.scale, 1);
      continue;
    }
    std::ranges::sort(all);
    if (is_constant) {
      EXPECT_EQ(found.coefficients[0], double(all[all.size() / 2]));
      for (int k = 1; k < stereo::kCommonTerms; ++k) EXPECT_EQ(found.coefficients[k], 0);
      continue;
    }
    double squares = 0;
    for (int n = 0; n < 1000; ++n) {
      const double x = place(random), y = place(random);
      squares += std::pow(found.at(x, y) - truth(x, y), 2);
    }
    // The 15 terms of a fit take their share of the noise; wrong samples have no weight.
    EXPECT_LT(std::sqrt(squares / 1000), 1.6 * kNoise * std::sqrt(15.0 / static_cast<double>(all.size())));
    EXPECT_NEAR(found.scale, kNoise / kPredicted, 0.5);
  }
}

TEST_F(Surface, MediansOfDistancesAreThoseOfSortedLists) {
  const Stream stream;
  for (const double lost : {0.0, 0.3, 1.0}) {
    const Distances all(lost);
    const DeviceArray<float> px(all.px, stream), sigma(all.sigma, stream), offset(all.px.size(), stream);
    const DeviceArray<std::uint8_t> status(bytes_of(all.status), stream);
    const DeviceObjects<kernels::EpipolarMedians> medians(1);
    kernels::DeviceBuffer workspace;
    const stereo::EpipolarJob job{all.grid, px.data(), sigma.data(), offset.data(),
                                  reinterpret_cast<Status*>(status.data())};
    stereo::CommonDistance common{};
    common.coefficients[0] = 0.01, common.coefficients[2] = -0.003, common.scale = 1;
    const DeviceObjects<stereo::CommonDistance> on_device({common}, stream);
    kernels::launch_mark_contradictions(job, on_device.data(), stream.handle());
    kernels::launch_epipolar_medians(job, medians.data(),
                                     workspace.reserve(kernels::median_workspace_bytes()), stream.handle());
    const auto found = medians.values(stream);
    std::vector<float> sizes, offsets;
    for (const std::int64_t k : all.known) {
      sizes.push_back(std::abs(all.px[k]));
      const double y = 2.0 * static_cast<double>(k / all.grid.nx) / all.grid.ny - 1;
      offsets.push_back(static_cast<float>(std::abs(all.px[k] - (0.01 - 0.003 * y))));
    }
    std::ranges::sort(sizes), std::ranges::sort(offsets);
    if (sizes.empty()) {
      EXPECT_TRUE(std::isnan(found[0].distance) && std::isnan(found[0].offset));
      continue;
    }
    EXPECT_EQ(found[0].distance, sizes[sizes.size() / 2]);
    EXPECT_NEAR(found[0].offset, offsets[offsets.size() / 2], 1e-8);
  }
}

TEST_F(Surface, SumsOfTheMotionAreThoseOfALoop) {
  const Stream stream;
  for (const int rows : {1, 97, 700}) {
    const stereo::NodeGrid grid{211, rows, 0, 0, 5};
    const auto n = static_cast<std::size_t>(grid.nodes());
    std::mt19937 random(9);
    std::uniform_real_distribution<double> unit(-1, 1);
    std::vector<stereo::Vector3> positions, displacements;
    std::vector<stereo::PointErrors> errors(n);
    std::vector<float> before(6 * n);
    std::vector<Status> status;
    for (std::size_t k = 0; k < n; ++k) {
      positions.push_back(stereo::vector3(50 * unit(random), 40 * unit(random), 500 + unit(random)));
      displacements.push_back(stereo::vector3(unit(random), 3 + unit(random), unit(random)));
      for (float& value : errors[k].now) value = static_cast<float>(unit(random));
      for (float& value : errors[k].across) value = static_cast<float>(unit(random));
      for (int c = 0; c < 6; ++c) before[6 * k + c] = static_cast<float>(unit(random));
      status.push_back(k % 5 == 0 ? Status::outlier : Status::ok);
    }
    const DeviceObjects<stereo::Vector3> position(positions, stream), displacement(displacements, stream);
    const DeviceObjects<stereo::PointErrors> on_device(errors, stream);
    const DeviceArray<float> covariance(before, stream);
    const DeviceArray<std::uint8_t> of_points(bytes_of(status), stream);
    const DeviceObjects<kernels::MotionSums> sums(1);
    kernels::DeviceBuffer workspace;
    stereo::SurfaceJob job{};
    job.grid = grid;
    job.reference.position = position.data(), job.reference.covariance = covariance.data();
    job.out.displacement = displacement.data(), job.out.errors = on_device.data();
    job.out.status = reinterpret_cast<Status*>(of_points.data());
    kernels::launch_sum_motion(job, sums.data(), workspace.reserve(kernels::motion_workspace_bytes()),
                               stream.handle());
    const kernels::MotionSums found = sums.values(stream)[0];

    using Eigen::Vector3d;
    const auto vector = [](const stereo::Vector3& v) { return Vector3d(v[0], v[1], v[2]); };
    double count = 0;
    Vector3d centre = Vector3d::Zero(), mean = centre;
    for (std::size_t k = 0; k < n; ++k)
      if (status[k] == Status::ok)
        count += 1, centre += vector(positions[k]), mean += vector(displacements[k]);
    centre /= count, mean /= count;
    double squares = 0;
    Eigen::Matrix3d products = Eigen::Matrix3d::Zero(), spread = products;
    Eigen::Matrix<double, 6, 6> noise = Eigen::Matrix<double, 6, 6>::Zero();
    for (std::size_t k = 0; k < n; ++k) {
      if (status[k] != Status::ok) continue;
      const Vector3d b = vector(positions[k]) - centre, d = vector(displacements[k]) - mean;
      squares += d.squaredNorm(), products += d * b.transpose(), spread += b * b.transpose();
      const auto symmetric = [](const float* m) {
        Eigen::Matrix3d s;
        s << m[0], m[3], m[4], m[3], m[1], m[5], m[4], m[5], m[2];
        return s;
      };
      Eigen::Matrix3d across;
      for (int c = 0; c < 9; ++c) across(c / 3, c % 3) = errors[k].across[c];
      Eigen::Matrix<double, 3, 6> by_motion = Eigen::Matrix<double, 3, 6>::Zero();
      for (int axis = 0; axis < 3; ++axis) by_motion.col(axis) = Vector3d::Unit(axis).cross(b);
      by_motion.rightCols<3>().setIdentity();
      noise += by_motion.transpose() *
               (symmetric(errors[k].now) + symmetric(before.data() + 6 * k) - across - across.transpose()) *
               by_motion;
    }
    EXPECT_EQ(found.means.sums[0], count);
    EXPECT_NEAR(found.moments.displacement_squares(), squares, 1e-9 * count);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(found.means.centre()[i], centre[i], 1e-9);
      EXPECT_NEAR(found.means.translation()[i], mean[i], 1e-9);
      for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(found.moments.products()(i, j), products(i, j), 1e-7 * count);
        EXPECT_NEAR(found.moments.spread()(i, j), spread(i, j), 1e-7 * count);
      }
    }
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) EXPECT_NEAR(found.moments.noise()(i, j), noise(i, j), 1e-6 * count);
  }
}

}  // namespace
}  // namespace dic::test

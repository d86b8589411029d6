#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/shared/subset_window.hpp>
#include <dic/stereo.hpp>
#include <dic/synth_stereo.hpp>
#include <functional>
#include <numbers>
#include <random>

#include "run/frame_pairs.hpp"
#include "stereo/calibration_errors.hpp"
#include "stereo/camera_pair.hpp"
#include "stereo/curved_match.hpp"

// Measures surfaces of known shape and motion: exact rays of two cameras meet a surface whose texture is a
// sum of waves, so that nothing is interpolated.
namespace dic {
namespace {

using Vec = std::array<double, 3>;
using Mat = std::array<double, 9>;

constexpr Size kImage = {300, 240};
constexpr double kFocal = 1200, kDistance = 300, kNoise = 1;

Vec operator+(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vec operator-(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec operator*(double s, const Vec& a) { return {s * a[0], s * a[1], s * a[2]}; }
Vec times(const Mat& m, const Vec& v) {
  return {m[0] * v[0] + m[1] * v[1] + m[2] * v[2], m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
          m[6] * v[0] + m[7] * v[1] + m[8] * v[2]};
}
Mat transposed(const Mat& m) { return {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]}; }
Mat about_y(double degrees) {
  const double a = degrees * std::numbers::pi / 180;
  return {std::cos(a), 0, std::sin(a), 0, 1, 0, -std::sin(a), 0, std::cos(a)};
}
Mat about_x(double degrees) {
  const double a = degrees * std::numbers::pi / 180;
  return {1, 0, 0, 0, std::cos(a), -std::sin(a), 0, std::sin(a), std::cos(a)};
}

/// The right camera is turned about the middle of the specimen.
CameraRig rig_of(double degrees) {
  CameraRig rig;
  rig.cameras.resize(2);
  for (RigCamera& camera : rig.cameras)
    camera.camera = {kImage, Lens{kFocal, kFocal, (kImage.width - 1) / 2.0, (kImage.height - 1) / 2.0}, {}};
  const Vec middle = {0, 0, kDistance};
  rig.cameras[1].rotation = about_y(degrees);
  rig.cameras[1].translation_mm = middle - times(rig.cameras[1].rotation, middle);
  return rig;
}

/// Grey level of the material point (a, b), mm.
class Texture {
 public:
  Texture() {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> unit(0, 1);
    for (Wave& wave : waves_) {
      const double angle = 2 * std::numbers::pi * unit(random);
      const double frequency = 2 * std::numbers::pi / ((5 + 10 * unit(random)) * kDistance / kFocal);
      wave = {frequency * std::cos(angle), frequency * std::sin(angle), 2 * std::numbers::pi * unit(random)};
    }
  }
  double at(double a, double b) const {
    double sum = 0;
    for (const Wave& wave : waves_) sum += std::cos(wave.a * a + wave.b * b + wave.phase);
    return 128 + 45 * sum * std::sqrt(2.0 / kWaves);
  }

 private:
  struct Wave {
    double a, b, phase;
  };
  static constexpr int kWaves = 60;
  std::array<Wave, kWaves> waves_{};
};

/// Finds the material point (a, b) that a ray meets; NaN where it misses.
using Surface = std::function<std::array<double, 2>(const Vec& centre, const Vec& direction)>;

/// The plane z = kDistance, moved to R (X - middle) + middle + t.
Surface plane(const Mat& rotation, const Vec& t) {
  return [=](const Vec& centre, const Vec& direction) -> std::array<double, 2> {
    const Vec middle = {0, 0, kDistance}, normal = times(rotation, {0, 0, 1}), at = middle + t;
    const auto dot = [](const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
    const double s = dot(at - centre, normal) / dot(direction, normal);
    const Vec before = times(transposed(rotation), centre + s * direction - at);
    return {before[0], before[1]};
  };
}

/// A cylinder along y, whose nearest line is at kDistance, inflated by a factor. Material points: arc length
/// and y.
Surface cylinder(double radius, double factor) {
  return [=](const Vec& centre, const Vec& direction) -> std::array<double, 2> {
    const double x = centre[0], z = centre[2] - kDistance - radius, r = radius * factor;
    const double a = direction[0] * direction[0] + direction[2] * direction[2];
    const double b = x * direction[0] + z * direction[2], c = x * x + z * z - r * r, root = b * b - a * c;
    if (root < 0) return {NAN, NAN};
    const double s = (-b - std::sqrt(root)) / a;
    return {radius * std::atan2(x + s * direction[0], -(z + s * direction[2])), centre[1] + s * direction[1]};
  };
}

Image render(const RigCamera& camera, const Surface& surface, unsigned seed) {
  static const Texture texture;
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, kNoise);
  Image image(kImage, ScalarType::u8);
  const Lens& lens = *camera.camera.lens;
  const Mat back = transposed(camera.rotation);
  const Vec centre = -1 * times(back, camera.translation_mm);
  for (int y = 0; y < kImage.height; ++y)
    for (int x = 0; x < kImage.width; ++x) {
      const auto [a, b] = surface(centre, times(back, {(x - lens.cx) / lens.fx, (y - lens.cy) / lens.fy, 1}));
      const double grey = std::isnan(a) ? 40 : texture.at(a, b);
      image.row<std::uint8_t>(y)[x] =
          static_cast<std::uint8_t>(std::clamp(std::lround(grey + noise(random)), 0L, 255L));
    }
  return image;
}

struct Pair {
  Image left, right;
};
Pair pair_of(const CameraRig& rig, const Surface& surface, unsigned seed) {
  return {render(rig.cameras[0], surface, seed), render(rig.cameras[1], surface, seed + 1)};
}

StereoOptions options_of(int subset = 21, int step = 8) {
  StereoOptions options;
  options.track.refine.subset = subset;
  options.track.step = step;
  options.track.device = "cpu";
  options.track.threads = 1;
  return options;
}

/// Errors of an array over the `ok` points.
struct Errors {
  double n = 0, bias = 0, sd = 0;
  double ratio = 0;  ///< root mean square error in predicted standard deviations
  double worst = 0;  ///< largest error in predicted standard deviations
};
template <typename T, typename Truth>
Errors errors_of(const Field& field, const NodeValues<T>& values, const NodeValues<float>& sigma,
                 const Truth& truth) {
  Errors e;
  double squares = 0, ratios = 0;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    if (field.status[k] != Status::ok || std::isnan(values[k]) || std::isnan(sigma[k])) continue;
    const double error = values[k] - truth(k);
    e.n += 1, e.bias += error, squares += error * error, ratios += std::pow(error / sigma[k], 2);
    e.worst = std::max(e.worst, std::abs(error / sigma[k]));
  }
  e.bias /= e.n;
  e.sd = std::sqrt(squares / e.n - e.bias * e.bias);
  e.ratio = std::sqrt(ratios / e.n);
  return e;
}

/// Direction of the ray through a node of the left image, with z = 1.
Vec ray(const Grid& grid, std::size_t k) {
  return {(grid.x(static_cast<int>(k % grid.nx)) - (kImage.width - 1) / 2.0) / kFocal,
          (grid.y(static_cast<int>(k / grid.nx)) - (kImage.height - 1) / 2.0) / kFocal, 1};
}

void expect_as_predicted(const Errors& e, double largest_bias, const char* what) {
  EXPECT_GT(e.n, 300) << what;
  EXPECT_LT(std::abs(e.bias), largest_bias) << what;
  EXPECT_GT(e.ratio, 0.8) << what;
  EXPECT_LT(e.ratio, 1.2) << what;
  EXPECT_LT(e.worst, 6) << what;
}

/// Variances of the corrected displacement u - (S^2 - 1) / 24 (u_xx + u_yy) for white noise in the images,
/// computed apart with NumPy: the pseudoinverse of a quadratic polynomial, and errors that are as alike as
/// subsets overlap.
TEST(BendFilter, KnowsTheNoiseThatItsPolynomialsAdd) {
  MeasuredSubsets subsets;
  subsets.size = 21;
  const stereo::BendFilter eight(subsets, 8), five(subsets, 5);
  EXPECT_EQ(eight.narrow, 5);
  EXPECT_EQ(eight.wide, 9);
  EXPECT_NEAR(eight.narrow_variance, 1.2205, 2e-3);
  EXPECT_NEAR(eight.wide_variance, 1.0345, 2e-3);
  EXPECT_EQ(five.narrow, 7);
  EXPECT_NEAR(five.narrow_variance, 1.2603, 2e-3);
  EXPECT_NEAR(five.wide_variance, 1.0463, 2e-3);
  EXPECT_GT(eight.difference_variance, 0.005);
  EXPECT_LT(eight.difference_variance, 0.0174 + 0.0009) << "not more than both together";
}

/// What a least-squares fit of order 1, mean and gain to the bends at (x0, y0) answers at its centre, by its
/// definition: all pixels, double precision, QR.
Eigen::Matrix<double, 2, 6> naive_response(const std::function<double(int, int)>& grey, Size image, int x0,
                                           int y0, const MeasuredSubsets& subsets) {
  const int radius = subsets.size / 2;
  std::vector<std::array<double, 14>> rows;
  for (int y = std::max(y0 - radius, 0); y <= std::min(y0 + radius, image.height - 1); ++y)
    for (int x = std::max(x0 - radius, 0); x <= std::min(x0 + radius, image.width - 1); ++x) {
      const bool has_x = x > 0 && x + 1 < image.width, has_y = y > 0 && y + 1 < image.height;
      const double gx = has_x ? (grey(x + 1, y) - grey(x - 1, y)) / 2 : 0;
      const double gy = has_y ? (grey(x, y + 1) - grey(x, y - 1)) / 2 : 0;
      const double a = x - x0, b = y - y0, g = grey(x, y);
      const double w = std::sqrt(window_weight<double>(subsets.weights, x - x0, subsets.size) *
                                 window_weight<double>(subsets.weights, y - y0, subsets.size));
      rows.push_back({gx, gy, gx * a, gx * b, gy * a, gy * b, 1, g, gx * a * a / 2, gx * a * b,
                      gx * b * b / 2, gy * a * a / 2, gy * a * b, gy * b * b / 2});
      for (double& value : rows.back()) value *= w;
    }
  Eigen::MatrixXd basis(rows.size(), 8), bends(rows.size(), 6);
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (int j = 0; j < 14; ++j) (j < 8 ? basis(k, j) : bends(k, j - 8)) = rows[k][j];
  const Eigen::VectorXd scale = basis.colwise().norm().cwiseInverse();
  const Eigen::MatrixXd fitted =
      scale.asDiagonal() * Eigen::MatrixXd((basis * scale.asDiagonal()).colPivHouseholderQr().solve(bends));
  return fitted.topRows<2>();
}

TEST(BendResponse, IsThatOfTheFitAlsoAtTheBorderAndForDeepImages) {
  constexpr Size kSmall = {90, 70};
  std::mt19937 random(5);
  std::uniform_int_distribution<int> pixel(0, 255);
  Image image(kSmall, ScalarType::u16);
  for (int y = 0; y < kSmall.height; ++y)
    for (int x = 0; x < kSmall.width; ++x)
      image.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(20000 + 150 * pixel(random));
  Grid grid{.x0 = 5, .y0 = 3, .step = 7, .nx = 13, .ny = 10, .inside = std::vector<std::uint8_t>(130, 1)};
  grid.inside[17] = 0;
  core::ThreadPool pool(2);
  for (const SubsetWeights weights : {SubsetWeights::uniform, SubsetWeights::gaussian})
    for (const int size : {11, 21}) {
      MeasuredSubsets subsets;
      subsets.size = size, subsets.weights = weights;
      const auto responses = stereo::bend_responses(image.view(), grid, subsets, pool);
      ASSERT_EQ(responses.size(), 130);
      EXPECT_TRUE(responses[17].isZero());
      for (const std::size_t k : {0, 5, 12, 60, 77, 117, 129}) {
        const auto expected =
            naive_response([&](int x, int y) { return double(image.row<std::uint16_t>(y)[x]); }, kSmall,
                           grid.x(static_cast<int>(k % 13)), grid.y(static_cast<int>(k / 13)), subsets);
        EXPECT_LT((responses[k].cast<double>() - expected).norm(), 1e-3 * expected.norm())
            << "node " << k << ", subset " << size;
      }
    }
}

/// A rig whose parameters differ by `change`, in the order of rig_parameter_names().
CameraRig changed(CameraRig rig, const Eigen::VectorXd& change) {
  for (int k = 0; k < 2; ++k) {
    Lens& lens = *rig.cameras[k].camera.lens;
    int i = 12 * k;
    for (double* value : {&lens.fx, &lens.fy, &lens.cx, &lens.cy, &lens.k1, &lens.k2, &lens.p1, &lens.p2,
                          &lens.k3, &lens.k4, &lens.k5, &lens.k6})
      *value += change[i++];
  }
  RigCamera& right = rig.cameras[1];
  const Eigen::Vector3d turn = change.segment<3>(24);
  const Eigen::Matrix3d exponential =
      Eigen::AngleAxisd(turn.norm(), turn.stableNormalized()).toRotationMatrix();
  using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
  Eigen::Map<Rows> rotation(right.rotation.data());
  rotation = (exponential * rotation).eval();
  for (int i = 0; i < 3; ++i) right.translation_mm[i] += change[27 + i];
  return rig;
}

CameraRig distorting_rig() {
  CameraRig rig = rig_of(25);
  for (RigCamera& camera : rig.cameras) {
    Lens& lens = *camera.camera.lens;
    lens.k1 = -0.2, lens.k2 = 0.3, lens.p1 = 0.002, lens.p2 = -0.003, lens.k3 = 0.1, lens.k4 = 0.05;
    lens.fy += 15, lens.cx += 4;
  }
  return rig;
}

TEST(CalibrationErrors, AreThoseOfPerturbedCalibrations) {
  using Eigen::Vector4d;
  CameraRig rig = distorting_rig();
  std::mt19937 random(9);
  std::normal_distribution<double> normal(0, 1);
  Eigen::VectorXd sd(30);
  sd << 0.5, 0.5, 0.4, 0.4, 2e-3, 1e-2, 1e-4, 1e-4, 1e-2, 1e-3, 0, 0, 0.5, 0.5, 0.4, 0.4, 2e-3, 1e-2, 1e-4,
      1e-4, 1e-2, 1e-3, 0, 0, 1e-4, 2e-4, 1e-4, 0.02, 0.01, 0.03;
  const Eigen::MatrixXd mixing =
      Eigen::MatrixXd::Identity(30, 30) +
      0.2 * Eigen::MatrixXd::NullaryExpr(30, 30, [&](Eigen::Index) { return normal(random); });
  const Eigen::MatrixXd factor = sd.asDiagonal() * mixing, covariance = factor * factor.transpose();
  rig.covariance.assign(covariance.data(), covariance.data() + covariance.size());

  const stereo::CameraPair cameras = stereo::camera_pair_of(rig);
  const stereo::CalibrationErrors errors(rig);
  ASSERT_TRUE(errors.are_known());
  const Eigen::Vector3d before(20, -15, 290), after(21, -13, 294);
  // The image points of a position, as dic::Camera maps them.
  const auto image_point = [&](std::size_t camera, const Eigen::Vector3d& at) {
    const Lens& lens = *rig.cameras[camera].camera.lens;
    return Camera(rig.cameras[camera].camera)
        .distort(lens.fx * at.x() / at.z() + lens.cx, lens.fy * at.y() / at.z() + lens.cy);
  };
  const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> turn(rig.cameras[1].rotation.data());
  const Eigen::Map<const Eigen::Vector3d> shift(rig.cameras[1].translation_mm.data());
  const auto meet = [&](const stereo::CameraPair& with, const Eigen::Vector3d& position, const Vector4d& px) {
    const Camera::Point l = image_point(0, position), r = image_point(1, turn * position + shift);
    return with.meet(stereo::sight_of(with.left, l.x, l.y), stereo::sight_of(with.right, r.x, r.y),
                     {{{px[0]}, {px[1]}, {px[2]}, {px[3]}}});
  };
  const auto from_rig = [&](const Eigen::Vector3d& position, const Vector4d& px) {
    return stereo::CalibrationTerms::from_rig(cameras, stereo::from_eigen(position),
                                              meet(cameras, position, px).from_px);
  };
  const auto sigmas = [&](const stereo::FromRig& change) -> Eigen::Vector3d {
    return stereo::as_eigen(errors.terms().sigmas(change));
  };
  const Vector4d exact_left(0, 0, 0.01, 0.01), all(0.01, 0.01, 0.02, 0.01);
  const stereo::FromRig of_before = from_rig(before, exact_left), of_after = from_rig(after, all);
  const Eigen::Vector3d position = sigmas(of_before), displacement = sigmas(of_after - of_before);

  Eigen::Vector3d positions = Eigen::Vector3d::Zero(), displacements = Eigen::Vector3d::Zero();
  constexpr int kDraws = 1500;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Eigen::VectorXd z = Eigen::VectorXd::NullaryExpr(30, [&](Eigen::Index) { return normal(random); });
    const stereo::CameraPair other = stereo::camera_pair_of(changed(rig, factor * z));
    const auto error = [&](const Eigen::Vector3d& truth, const Vector4d& px) -> Eigen::Vector3d {
      return stereo::as_eigen(meet(other, truth, px).position) - truth;
    };
    const Eigen::Vector3d first = error(before, exact_left);
    positions += first.cwiseAbs2();
    displacements += (error(after, all) - first).cwiseAbs2();
  }
  positions = (positions / kDraws).cwiseSqrt(), displacements = (displacements / kDraws).cwiseSqrt();
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(position[axis], positions[axis], 0.06 * positions[axis]) << axis;
    EXPECT_NEAR(displacement[axis], displacements[axis], 0.06 * displacements[axis]) << axis;
  }
}

/// A rig whose base is too long by a factor makes everything too long by it.
TEST(CalibrationErrors, OfTheBaseAreThoseOfTheScale) {
  constexpr double kScale = 1e-3;
  CameraRig rig = rig_of(25);
  const Pair first = pair_of(rig, plane(about_x(10), {}), 41),
             second = pair_of(rig, plane(about_x(10), {1, -0.7, 1.5}), 43);
  {
    StereoTracker unknown(options_of(), rig, first.left, first.right);
    const StereoFrame frame = unknown.track(second.left, second.right);
    for (const float sigma : frame.field.stereo.calibration_sigma_w) ASSERT_TRUE(std::isnan(sigma));
  }
  rig.covariance.assign(900, 0);
  const auto& base = rig.cameras[1].translation_mm;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) rig.covariance[30 * (27 + i) + 27 + j] = kScale * kScale * base[i] * base[j];
  StereoTracker tracker(options_of(), rig, first.left, first.right);
  const StereoFrame frame = tracker.track(second.left, second.right);
  const StereoField& s = frame.field.stereo;
  int points = 0;
  for (std::size_t k = 0; k < s.x.size(); ++k) {
    if (frame.field.status[k] != Status::ok) {
      continue;
    }
    ++points;
    ASSERT_NEAR(s.calibration_sigma_x[k], kScale * std::abs(s.x[k]), 1e-5);
    ASSERT_NEAR(s.calibration_sigma_y[k], kScale * std::abs(s.y[k]), 1e-5);
    ASSERT_NEAR(s.calibration_sigma_z[k], kScale * std::abs(s.z[k]), 1e-5);
    ASSERT_NEAR(s.calibration_sigma_u[k], kScale * std::abs(s.u[k]), 1e-5);
    ASSERT_NEAR(s.calibration_sigma_v[k], kScale * std::abs(s.v[k]), 1e-5);
    ASSERT_NEAR(s.calibration_sigma_w[k], kScale * std::abs(s.w[k]), 1e-5);
  }
  EXPECT_GT(points, 300);
}

/// order 2.
TEST(Stereo, APlaneThatMovesIsMeasuredAsWellAsPredicted) {
  const CameraRig rig = rig_of(25);
  const Vec t = {1, -0.7, 1.5};
  const Mat still = about_y(0);
  const Pair first = pair_of(rig, plane(still, {}), 1), second = pair_of(rig, plane(still, t), 3);
  StereoTracker tracker(options_of(), rig, first.left, first.right);
  EXPECT_EQ(tracker.order_between_cameras(), 1);
  const StereoFrame& reference = tracker.reference();
  const StereoField& shape = reference.field.stereo;
  const auto z = errors_of(reference.field, shape.z, shape.sigma_z, [](std::size_t) { return kDistance; });
  expect_as_predicted(z, 0.0005, "Z");
  EXPECT_LT(reference.epipolar_sd, 0.01);

  const StereoFrame frame = tracker.track(second.left, second.right);
  const StereoField& s = frame.field.stereo;
  expect_as_predicted(errors_of(frame.field, s.u, s.sigma_u, [&](std::size_t) { return t[0]; }), 0.0003, "U");
  expect_as_predicted(errors_of(frame.field, s.v, s.sigma_v, [&](std::size_t) { return t[1]; }), 0.0003, "V");
  expect_as_predicted(errors_of(frame.field, s.w, s.sigma_w, [&](std::size_t) { return t[2]; }), 0.0006, "W");
  const StrainField& e = frame.field.strain;
  const auto none = [](std::size_t) { return 0.0; };
  for (const auto& [values, sigma] :
       {std::pair(&e.exx, &e.sigma_exx), std::pair(&e.eyy, &e.sigma_eyy), std::pair(&e.exy, &e.sigma_exy)}) {
    const Errors strain = errors_of(frame.field, *values, *sigma, none);
    EXPECT_LT(std::abs(strain.bias), 3e-5);
    EXPECT_GT(strain.ratio, 0.85);
    EXPECT_LT(strain.ratio, 1.15);
  }
  for (int axis = 0; axis < 3; ++axis)
    EXPECT_NEAR(frame.motion.translation_mm[axis], t[axis], 6 * frame.motion.sigma_translation_mm[axis]);
}

TEST(Stereo, ARotationOutOfThePlaneIsNoStrain) {
  const CameraRig rig = rig_of(20);
  const Mat turned = about_y(4);
  const Pair first = pair_of(rig, plane(about_y(0), {}), 11), second = pair_of(rig, plane(turned, {}), 13);
  StereoOptions options = options_of();
  options.remove_rigid_motion = true;
  StereoTracker tracker(options, rig, first.left, first.right);
  const StereoFrame frame = tracker.track(second.left, second.right);
  const StrainField& e = frame.field.strain;
  const auto none = [](std::size_t) { return 0.0; };
  EXPECT_LT(std::abs(errors_of(frame.field, e.exx, e.sigma_exx, none).bias),
            5e-5);  // cos(4 deg) - 1 = -2.4e-3
  EXPECT_NEAR(frame.motion.rotation_deg[1], 4, std::max(6 * frame.motion.sigma_rotation_deg[1], 1e-4));
  const StereoField& s = frame.field.stereo;
  EXPECT_LT(errors_of(frame.field, s.w, s.sigma_w, none).worst, 7);  // nothing is left of 1.5 mm
}

TEST(Stereo, ACylinderIsMatchedWithOrder2AndItsInflationIsHoopStrain) {
  const CameraRig rig = rig_of(25);
  constexpr double kRadius = 40, kFactor = 1.01;
  const Pair first = pair_of(rig, cylinder(kRadius, 1), 21),
             second = pair_of(rig, cylinder(kRadius, kFactor), 23);
  StereoTracker tracker(options_of(15, 6), rig, first.left, first.right);
  EXPECT_EQ(tracker.order_between_cameras(), 2);
  const Grid grid = tracker.grid();
  const auto depth = [&](std::size_t k) {
    const Vec d = ray(grid, k);
    const double a = d[0] * d[0] + 1, b = -(kDistance + kRadius), c = b * b - kRadius * kRadius;
    return (-b - std::sqrt(b * b - a * c)) / a;
  };
  const StereoField& shape = tracker.reference().field.stereo;
  const Errors z = errors_of(tracker.reference().field, shape.z, shape.sigma_z, depth);
  EXPECT_LT(std::abs(z.bias), 0.001);
  EXPECT_LT(z.ratio, 1.2);
  EXPECT_LT(z.worst, 6);
  // Angles between the line of sight and the normal, from the truth: nothing steeper than 60 degrees is ok,
  // up to its error.
  const Vec centre = -1 * times(transposed(rig.cameras[1].rotation), rig.cameras[1].translation_mm);
  double steepest = 0;
  for (std::size_t k = 0; k < tracker.reference().field.status.size(); ++k) {
    if (tracker.reference().field.status[k] != Status::ok) continue;
    const Vec p = depth(k) * ray(grid, k);
    for (const Vec& sight : {p, p - centre}) {
      const double along = (sight[0] * p[0] + sight[2] * (p[2] - kDistance - kRadius)) / kRadius;
      const double length = std::hypot(sight[0], sight[1], sight[2]);
      steepest = std::max(steepest, std::acos(std::min(std::abs(along) / length, 1.0)));
    }
  }
  EXPECT_LT(steepest * 180 / std::numbers::pi, 63);
  EXPECT_GT(steepest * 180 / std::numbers::pi, 55);
  const StereoFrame frame = tracker.track(second.left, second.right);
  const StrainField& e = frame.field.strain;
  const double hoop = (kFactor * kFactor - 1) / 2;
  const Errors strain = errors_of(frame.field, e.exx, e.sigma_exx, [&](std::size_t) { return hoop; });
  EXPECT_LT(std::abs(strain.bias), 1e-4);
  EXPECT_GT(strain.ratio, 0.8);
  EXPECT_LT(strain.ratio, 1.15);
  EXPECT_LT(std::abs(errors_of(frame.field, e.eyy, e.sigma_eyy, [](std::size_t) { return 0.0; }).bias), 1e-4);
}

/// A window is as wide as the bulge, whose strain it flattens by many times the noise.
TEST(Stereo, SigmaOfStrainCountsWhatWindowsFlatten) {
  StereoSynthOptions synth;
  synth.image.size = {500, 400};
  synth.rig = convergent_rig(synth.image.size, 2500, 500, 25);
  synth.pose = facing_middle(synth.rig, 500);
  synth.motion = {.bulge_mm = 2, .bulge_width_mm = 8};
  const StereoScene scene(synth);
  StereoOptions options = options_of(21, 8);
  options.track.strain.window = 9;
  const Image left = scene.frame(0, 0), right = scene.frame(1, 0), now_left = scene.frame(0, 1),
              now_right = scene.frame(1, 1);
  StereoTracker tracker(options, synth.rig, left, right);
  const StereoFrame frame = tracker.track(now_left, now_right);
  const Grid grid = tracker.grid();
  const auto truth = [&](std::size_t k) {
    return scene
        .truth(1, grid.x0 + static_cast<double>(k % grid.nx) * grid.step,
               grid.y0 + static_cast<double>(k / grid.nx) * grid.step)
        .exx;
  };
  const StrainField& e = frame.field.strain;
  const Errors strain = errors_of(frame.field, e.exx, e.sigma_exx, truth);
  EXPECT_LT(strain.ratio, 1.2);
  EXPECT_GT(strain.ratio, 0.65) << "the largest of several estimates counts";
  EXPECT_LT(strain.worst, 10);
}

TEST(Stereo, AxesOfThePlaneMakeItZero) {
  const CameraRig rig = rig_of(20);
  const Pair first = pair_of(rig, plane(about_x(12), {}), 31);
  StereoOptions options = options_of();
  options.axes = StereoAxes::plane;
  const StereoTracker tracker(options, rig, first.left, first.right);
  const Field& field = tracker.reference().field;
  const Errors z = errors_of(field, field.stereo.z, field.stereo.sigma_z, [](std::size_t) { return 0.0; });
  EXPECT_LT(std::abs(z.bias), 1e-6);
  EXPECT_LT(z.ratio, 1.2);
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    const float incidence = field.stereo.incidence[k];
    if (!std::isnan(incidence)) {
      ASSERT_NEAR(incidence, 25, 10);
    }
  }
}

TEST(Stereo, AxesOfACylinderLieOnIt) {
  const CameraRig rig = rig_of(25);
  constexpr double kRadius = 40;
  const Pair first = pair_of(rig, cylinder(kRadius, 1), 35);
  StereoOptions options = options_of(15, 6);
  options.axes = StereoAxes::cylinder;
  const StereoTracker tracker(options, rig, first.left, first.right);
  const StereoField& s = tracker.reference().field.stereo;
  double n = 0, radius = 0, along = 0;
  for (std::size_t k = 0; k < s.x.size(); ++k) {
    if (tracker.reference().field.status[k] != Status::ok) continue;
    ASSERT_NEAR(std::hypot(s.x[k], s.z[k]), kRadius, 0.1);
    ASSERT_LT(s.z[k], 0) << "the camera is at negative z";
    n += 1, radius += std::hypot(s.x[k], s.z[k]), along += s.y[k];
  }
  EXPECT_NEAR(radius / n, kRadius, 0.01);
  EXPECT_NEAR(along / n, 0, 1e-6);
  const Pair flat = pair_of(rig, plane(about_y(5), {}), 37);
  EXPECT_THROW(StereoTracker(options, rig, flat.left, flat.right), UsageError);
}

TEST(Stereo, AxesThroughThreePointsStartThere) {
  const CameraRig rig = rig_of(20);
  const Pair first = pair_of(rig, plane(about_y(0), {}), 33);
  StereoOptions options = options_of();
  options.axes = StereoAxes::points;
  EXPECT_FALSE(options.validate().empty());
  options.axes_points = {{{40, 40}, {200, 40}, {40, 160}}};
  const StereoTracker tracker(options, rig, first.left, first.right);
  const Field& field = tracker.reference().field;
  const std::size_t origin = 5 * static_cast<std::size_t>(tracker.grid().nx) + 5;
  EXPECT_NEAR(field.stereo.x[origin], 0, 1e-9);
  EXPECT_NEAR(field.stereo.z[origin], 0, 1e-9);
  EXPECT_NEAR(field.stereo.x[origin + 10], 80 * kDistance / kFocal, 0.01);
}

TEST(Stereo, AForeignCalibrationIsRefusedWithItsDistance) {
  const CameraRig rig = rig_of(20);
  const Pair first = pair_of(rig, plane(about_y(0), {}), 41);
  CameraRig foreign = rig;
  foreign.cameras[1].translation_mm[1] += 2;  // 8 px
  try {
    StereoTracker(options_of(), foreign, first.left, first.right);
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    const std::size_t lie = text.find(" lie ");
    ASSERT_NE(lie, std::string::npos) << text;
    EXPECT_NEAR(std::stod(text.substr(lie + 5)), 8, 0.1) << text;
    EXPECT_NE(text.find("epipolar"), std::string::npos) << text;
  }
}

TEST(Stereo, ARigThatMovedIsCorrected) {
  const CameraRig rig = rig_of(20);
  const Pair first = pair_of(rig, plane(about_x(10), {}), 43);
  CameraRig moved = rig;  // in the calibration; the images show how it was
  const Mat turn = about_x(0.05), other = about_y(0.03);
  const auto product = [](const Mat& a, const Mat& b) {
    Mat c{};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    return c;
  };
  moved.cameras[1].rotation = product(turn, product(other, rig.cameras[1].rotation));
  StereoOptions options = options_of();
  const StereoTracker as_given(options, moved, first.left, first.right);
  EXPECT_GT(as_given.reference().epipolar_median, 0.5);
  ASSERT_TRUE(as_given.rig_correction());
  EXPECT_NEAR(as_given.rig_correction()->rotation_deg[0], -0.05, 0.005);

  options.correct_rig = true;
  const StereoTracker corrected(options, moved, first.left, first.right);
  EXPECT_LT(corrected.reference().epipolar_median, 0.01);
  const RigCorrection& found = *corrected.rig_correction();
  EXPECT_NEAR(found.rotation_deg[0], -0.05, 5 * found.sigma_rotation_deg[0]);
  EXPECT_NEAR(found.rotation_deg[1], -0.03, 5 * found.sigma_rotation_deg[1]);
  const Field &right = corrected.reference().field,
              truth = StereoTracker(options_of(), rig, first.left, first.right).reference().field;
  double error = 0, n = 0;
  for (std::size_t k = 0; k < right.status.size(); ++k)
    if (right.status[k] == Status::ok && truth.status[k] == Status::ok)
      error += right.stereo.z[k] - truth.stereo.z[k], n += 1;
  EXPECT_GT(n, 300);
  EXPECT_LT(std::abs(error / n), 0.2) << "mm: 0.03 degrees alone would be 0.4";

  CameraRig far = rig;
  far.cameras[1].rotation = product(about_x(2), rig.cameras[1].rotation);
  EXPECT_THROW(StereoTracker(options, far, first.left, first.right), UsageError);
}

TEST(Stereo, WhatOnlyOneCameraSeesIsNotOk) {
  const CameraRig rig = rig_of(20);
  Pair first = pair_of(rig, plane(about_y(0), {}), 51);
  const Image other = render(rig.cameras[1], plane(about_y(0), {300, 200, 0}), 53);  // other material
  for (int y = 0; y < kImage.height; ++y)
    std::copy(other.row<std::uint8_t>(y), other.row<std::uint8_t>(y) + 140, first.right.row<std::uint8_t>(y));
  const StereoTracker tracker(options_of(), rig, first.left, first.right);
  const Field& field = tracker.reference().field;
  std::int64_t ok = 0;
  for (std::size_t k = 0; k < field.status.size(); ++k) {
    if (field.status[k] != Status::ok) continue;
    ++ok;
    ASSERT_LT(std::abs(field.stereo.z[k] - kDistance), 6 * field.stereo.sigma_z[k]) << k;
  }
  EXPECT_GT(ok, 250);
}

/// The subsets of the right images are so distorted that whole pixels hardly recognize them.
TEST(Stereo, AMotionFarBeyondTheLastFrameIsFound) {
  const CameraRig rig = rig_of(35);
  const Mat still = about_y(0);
  const Vec t = {8, 3, 0};  // 32 and 12 px
  const Pair first = pair_of(rig, plane(still, {}), 71), second = pair_of(rig, plane(still, t), 73);
  StereoTracker tracker(options_of(), rig, first.left, first.right);
  const StereoFrame frame = tracker.track(second.left, second.right);
  const StereoField& s = frame.field.stereo;
  const Errors u = errors_of(frame.field, s.u, s.sigma_u, [&](std::size_t) { return t[0]; });
  EXPECT_GT(u.n, 500);
  EXPECT_LT(std::abs(u.bias), 0.0005);
  EXPECT_LT(u.worst, 7);
}

TEST(Stereo, MisuseIsExplained) {
  const CameraRig rig = rig_of(20);
  const Pair first = pair_of(rig, plane(about_y(0), {}), 61);
  StereoOptions options = options_of();
  options.track.refine.order = 0;
  EXPECT_THROW(StereoTracker(options, rig, first.left, first.right), UsageError);
  CameraRig other = rig;
  EXPECT_THROW(StereoTracker(options_of(), rig, first.left, Image({200, 100}, ScalarType::u8)), UsageError);
  other.cameras[0].camera.image = {640, 480};
  EXPECT_THROW(StereoTracker(options_of(), other, first.left, first.right), UsageError);
}

TEST(FramePairs, NumbersOfCamerasAreToldFromThoseOfFrames) {
  using Names = std::vector<std::string>;
  const auto fits = [](const Names& left, const Names& right) {
    run::PairNames names;
    for (std::size_t k = 0; k < left.size(); ++k) names.add(left[k], right[k]);
    return names.mismatch().empty();
  };
  EXPECT_TRUE(fits({"a-0000_0.png", "a-0003_0.png"}, {"a-0000_1.png", "a-0003_1.png"}));
  EXPECT_TRUE(fits({"cam1_007.tif", "cam1_008.tif"}, {"cam2_007.tif", "cam2_008.tif"}));
  EXPECT_TRUE(fits({"left_1.png"}, {"right_1.png"}));
  EXPECT_FALSE(fits({"L_1.png", "L_2.png", "L_3.png"}, {"R_1.png", "R_3.png", "R_4.png"}));
  EXPECT_FALSE(fits({"a-1_0.png", "a-2_0.png"}, {"a-1_1.png", "a-3_1.png"}));
  EXPECT_TRUE(fits({"GT4-0000_0.png", "0001_0.png"}, {"GT4-0000_1.png", "0001_1.png"}));
  EXPECT_TRUE(fits({"L_1.png", "L_2.png"}, {"first.png", "second.png"}));
}

TEST(FramePairs, NumbersTellWhichImageIsMissing) {
  /// -1: the left image was taken first; 0: they belong together, or nobody knows.
  const auto order = [](const char* first_left, const char* first_right, const char* left,
                        const char* right) {
    run::PairNames names;
    names.add(first_left, first_right);
    const std::weak_ordering found = names.order_of(left, right);
    return found < 0 ? -1 : found > 0 ? 1 : 0;
  };
  EXPECT_EQ(order("a-0000_0.png", "a-0000_1.png", "a-0001_0.png", "a-0002_1.png"), -1);
  EXPECT_EQ(order("a-0000_0.png", "a-0000_1.png", "a-0010_0.png", "a-0009_1.png"), 1);
  EXPECT_EQ(order("a-0000_0.png", "a-0000_1.png", "a-0009_0.png", "a-0009_1.png"), 0);
  EXPECT_EQ(order("cam1_99.tif", "cam2_99.tif", "cam1_99.tif", "cam2_100.tif"), -1);
  EXPECT_EQ(order("cam1_10.tif", "cam2_11.tif", "cam1_20.tif", "cam2_31.tif"), 0) << "nothing was equal";
  EXPECT_EQ(order("a_1.png", "b_1.png", "a_2_7.png", "b_3.png"), 0) << "another count of numbers";
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>

#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/opencv.hpp>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>
#include <random>

#include "rendered_target.hpp"

// Targets seen by a known camera.
namespace dic {
namespace {

namespace fs = std::filesystem;

constexpr Size kImage = {800, 640};
const Lens kLens = {1250, 1244, 410, 311, -0.2, 0.08, 0.001, -0.0015};

Image render(const Lens& lens, const Pose& pose, const Target& target, double noise, unsigned seed,
             double white = 220) {
  RenderedTarget how{kImage, noise, seed};
  how.white = white;
  return how.seen(lens, pose, target);
}

/// A pose with the middle of the target near the axis, tilted by up to 30 degrees.
Pose random_pose(const Target& target, std::mt19937& random) {
  std::uniform_real_distribution<double> even(-1, 1);
  const double wide = target.pattern == TargetPattern::acircles ? 2 : 1;
  const double width = wide * (target.columns - 1) * target.square_mm;
  const double height = (target.rows - 1) * target.square_mm;
  Pose pose;
  pose.turn = {0.5 * even(random), 0.5 * even(random), 0.3 * even(random)};
  const double z = std::max(width / 0.55, height / 0.4) * 1250 / kImage.width * (1.1 + 0.1 * even(random));
  cv::Matx33d r;
  cv::Rodrigues(pose.turn, r);
  pose.shift = cv::Vec3d(0.13 * even(random) * z * 0.64, 0.1 * even(random) * z * 0.64, z) -
               r * cv::Vec3d(width / 2, height / 2, 0);
  return pose;
}

class Calibrate : public testing::Test {
 protected:
  Calibrate() { fs::create_directories(folder_); }
  ~Calibrate() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const Image& image) const {
    const fs::path path = folder_ / (name + ".png");
    write_image(path, image);
    return path.string();
  }
  CalibrationJob job_of(const Target& target, int count, double noise = 1) const {
    CalibrationJob job;
    job.target = target;
    std::mt19937 random(5);
    for (int i = 0; i < count; ++i)
      job.images.push_back(
          write(std::to_string(i), render(kLens, random_pose(target, random), target, noise, 100 + i)));
    return job;
  }
  fs::path folder_ =
      fs::temp_directory_path() / ("dic_calibrate_" + std::to_string(getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

const Target kBoard = {TargetPattern::checkerboard, 10, 7, 5};
const Target kCircles = {TargetPattern::circles, 10, 7, 5};
const Target kShifted = {TargetPattern::acircles, 5, 9, 4};
const Pose kFlat = {{0.12, -0.2, 0.05}, {-24, -14, 130}};

/// Largest error of the map from image to ideal pixels inside the hull of the targets, px; the offset and
/// scale that a pose absorbs are not removed.
double map_error(const Lens& lens) {
  const Camera found({kImage, lens, {}}), truth({kImage, kLens, {}});
  double worst = 0;
  for (int y = 120; y <= 520; y += 40)
    for (int x = 150; x <= 650; x += 50) {
      const auto a = found.undistort(x, y), b = truth.undistort(x, y);
      // Errors of directions, in px of the true camera.
      worst = std::max(worst, std::hypot((a.x - lens.cx) / lens.fx - (b.x - kLens.cx) / kLens.fx,
                                         (a.y - lens.cy) / lens.fy - (b.y - kLens.cy) / kLens.fy) *
                                  kLens.fx);
    }
  return worst;
}

struct PatternCase {
  const char* name;
  Target target;
  double rms;  ///< px
};

class CalibratePattern : public Calibrate, public testing::WithParamInterface<PatternCase> {};
INSTANTIATE_TEST_SUITE_P(Patterns, CalibratePattern,
                         testing::Values(PatternCase{"checkerboard", kBoard, 0.02},
                                         PatternCase{"circles", kCircles, 0.012},
                                         PatternCase{"acircles", kShifted, 0.012}),
                         [](const auto& one) { return one.param.name; });

TEST_P(CalibratePattern, RecoversTheLens) {
  const Calibration found = calibrate(job_of(GetParam().target, 10));
  ASSERT_TRUE(found.camera.lens && found.deviations);
  const Lens &lens = *found.camera.lens, &sd = *found.deviations;
  for (const CalibrationImage& image : found.images) EXPECT_EQ(image.problem, "") << image.file;
  EXPECT_LT(found.rms, GetParam().rms);
  EXPECT_NEAR(lens.fx / kLens.fx, 1, 3e-4);
  EXPECT_NEAR(lens.fy / kLens.fy, 1, 3e-4);
  EXPECT_NEAR(lens.cx, kLens.cx, 0.4);
  EXPECT_NEAR(lens.cy, kLens.cy, 0.4);
  EXPECT_NEAR(lens.k1, kLens.k1, 0.004);
  EXPECT_LT(sd.fx, 0.3);
  EXPECT_LT(sd.k1, 0.002);
  EXPECT_LT(map_error(lens), 0.4);
}

TEST_P(CalibratePattern, FindsThePlaneOfTheSpecimen) {
  CalibrationJob job;
  job.target = GetParam().target;
  job.camera = CameraParameters{kImage, kLens, {}};
  job.plane = write("plane", render(kLens, kFlat, job.target, 1, 3));
  const Calibration found = calibrate(job);
  EXPECT_LT(found.plane->image.rms, GetParam().rms);
  CameraParameters truth{kImage, kLens, SpecimenPlane{}};
  const cv::Matx33d h = homography_of(kLens, kFlat);
  std::copy(h.val, h.val + 9, truth.plane->px_from_mm.begin());
  const Camera a(found.camera), b(truth);
  EXPECT_NEAR(a.scale_mm_per_px() / b.scale_mm_per_px(), 1, 2e-4);
  for (const auto& [x, y] : {std::pair(150, 120), {650, 120}, {150, 520}, {650, 520}}) {
    EXPECT_NEAR(a.undistort(x, y).x, b.undistort(x, y).x, 0.05);
    EXPECT_NEAR(a.undistort(x, y).y, b.undistort(x, y).y, 0.05);
  }
  cv::Matx33d r;
  cv::Rodrigues(kFlat.turn, r);
  EXPECT_NEAR(found.plane->tilt_deg, std::acos(r(2, 2)) * 180 / CV_PI, 0.05);
}

TEST_F(Calibrate, OneImageGivesPerspectiveAndScale) {
  const Lens pinhole = {1250, 1250, 399.5, 319.5};
  CalibrationJob job;
  job.target = kBoard;
  job.plane = write("plane", render(pinhole, kFlat, kBoard, 1, 3));
  const Calibration found = calibrate(job);
  EXPECT_FALSE(found.camera.lens);
  EXPECT_TRUE(found.warnings.empty());
  const cv::Matx33d h = homography_of(pinhole, kFlat);
  const Camera camera(found.camera);
  const auto seen = [&](double x, double y) {
    const cv::Vec3d p = h * cv::Vec3d(x, y, 1);
    return camera.undistort(p[0] / p[2], p[1] / p[2]);
  };
  const auto a = seen(0, 0), b = seen(45, 30);
  EXPECT_NEAR(std::hypot(a.x - b.x, a.y - b.y) * camera.scale_mm_per_px(), std::hypot(45, 30), 0.005);
  job.plane = write("distorted", render(kLens, {{0.12, -0.2, 0.05}, {-24, -14, 80}}, kBoard, 1, 3));
  EXPECT_EQ(calibrate(job).warnings.size(), 1u);
}

Image with_noise(const Image& image, double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> grey(0, noise);
  Image out(kImage, ScalarType::u8);
  for (int y = 0; y < kImage.height; ++y)
    for (int x = 0; x < kImage.width; ++x)
      out.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::clamp(std::round(image.row<std::uint8_t>(y)[x] + grey(random)), 0.0, 255.0));
  return out;
}

TEST_F(Calibrate, DeviationsAreTheScatter) {
  CalibrationJob job;
  job.target = {TargetPattern::checkerboard, 7, 6, 7.5};
  job.model = LensModel::k1k2;
  std::vector<Image> images;
  std::mt19937 random(5);
  for (int i = 0; i < 5; ++i)
    images.push_back(
        render({1250, 1244, 410, 311, -0.2, 0.08}, random_pose(job.target, random), job.target, 0, 1));
  std::vector<double> fx, k1;
  double sd_fx = 0, sd_k1 = 0;
  constexpr int kRuns = 8;
  for (int run = 0; run < kRuns; ++run) {
    job.images.clear();
    for (unsigned i = 0; i < images.size(); ++i)
      job.images.push_back(write(std::to_string(i), with_noise(images[i], 12, 1000 * run + i)));
    const Calibration found = calibrate(job);
    fx.push_back(found.camera.lens->fx);
    k1.push_back(found.camera.lens->k1);
    sd_fx += found.deviations->fx / kRuns;
    sd_k1 += found.deviations->k1 / kRuns;
  }
  const auto scatter = [](const std::vector<double>& values) {
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / kRuns;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / (kRuns - 1));
  };
  // The scatter of 8 runs is known to 27 %.
  EXPECT_NEAR(scatter(fx) / sd_fx, 1, 0.6);
  EXPECT_NEAR(scatter(k1) / sd_k1, 1, 0.6);
}

TEST_F(Calibrate, SaysWhichImagesItDidNotUse) {
  CalibrationJob job = job_of(kBoard, 5);
  Image blank(kImage, ScalarType::u8);
  job.images.push_back(write("blank", blank));
  Lens bent = kLens;  // points seen through another lens, as if the board were bent
  bent.k1 = 0.1;
  job.images.push_back(write("bent", render(bent, {{0.1, 0.1, 0}, {-24, -16, 100}}, kBoard, 1, 9)));
  const fs::path broken = folder_ / "broken.png";
  fs::copy(job.images[0], broken);
  fs::resize_file(broken, 1000);
  job.images.push_back(broken.string());
  const Calibration found = calibrate(job);
  EXPECT_NE(found.images[5].problem.find("not found"), std::string::npos);
  EXPECT_NE(found.images[6].problem.find("does not fit"), std::string::npos);
  EXPECT_NE(found.images[7].problem, "");
  EXPECT_LT(found.rms, 0.03);
}

TEST_F(Calibrate, WithoutTiltTheFocalLengthIsNotKnown) {
  // Without tilt, only the ratio of focal length and distance is known, whatever the noise makes of it.
  for (const double tilt : {0.0, 0.002, 0.01}) {
    CalibrationJob job;
    job.target = kBoard;
    job.model = LensModel::k1;
    const Lens lens = {1250, 1250, 410, 311, -0.2};
    for (int i = 0; i < 6; ++i) {
      const Pose pose = {{tilt * (i - 3), tilt * (2 - i), 0.03 * i},
                         {-24.0 + 2 * i, -14.0 - i, 120.0 + 4 * i}};
      job.images.push_back(write(std::to_string(i), render(lens, pose, kBoard, 1, i)));
    }
    try {
      const Calibration found = calibrate(job);
      EXPECT_NE(tilt, 0);
      EXPECT_LT(std::abs(found.camera.lens->fx - lens.fx), 4 * found.deviations->fx) << tilt;
    } catch (const UsageError& error) {
      EXPECT_LT(tilt, 0.01);
      EXPECT_NE(std::string(error.what()).find("tilt"), std::string::npos) << error.what();
    }
  }
}

TEST_F(Calibrate, AViewCountsOnce) {
  CalibrationJob job = job_of(kBoard, 4);
  const Calibration once = calibrate(job);
  std::mt19937 random(5);
  const Image first = render(kLens, random_pose(kBoard, random), kBoard, 0, 1);
  for (unsigned i = 0; i < 6; ++i)
    job.images.push_back(write("again" + std::to_string(i), with_noise(first, 2, i)));
  const Calibration repeated = calibrate(job);
  EXPECT_EQ(repeated.camera.lens->fx, once.camera.lens->fx);
  EXPECT_EQ(repeated.deviations->fx, once.deviations->fx);
  EXPECT_NE(repeated.images.back().problem.find("counts once"), std::string::npos);
  job.images = {job.images[0], job.images[4], job.images[5], job.images[6]};
  EXPECT_THROW(calibrate(job), UsageError) << "one view is not enough for a lens";
}

TEST_F(Calibrate, FindsBoardsThatAreBlurredUpsideDownOrBright) {
  std::mt19937 random(8);
  for (int i = 0; i < 8; ++i) {
    Pose pose = random_pose(kBoard, random);
    const Image sharp = render(kLens, pose, kBoard, 1, i);
    Image blurred(kImage, ScalarType::u8);
    cv::GaussianBlur(as_mat(sharp.view()), as_mat(blurred), {}, 3);
    EXPECT_EQ(find_target(blurred, kBoard).size(), 70u) << "blurred " << i;
    EXPECT_EQ(find_target(render(kLens, pose, kBoard, 1, i, 250), kBoard).size(), 70u) << "bright " << i;
    cv::Mat turned;
    cv::rotate(as_mat(sharp.view()), turned, cv::ROTATE_180);
    EXPECT_EQ(find_target(as_view(turned), kBoard).size(), 70u) << "upside down " << i;
  }
}

TEST_F(Calibrate, FindsCirclesThatAreTurned) {
  std::mt19937 random(8);
  for (int i = 0; i < 4; ++i) {
    const Image upright = render(kLens, random_pose(kCircles, random), kCircles, 1, i);
    const auto all = find_target(upright, kCircles);
    ASSERT_EQ(all.size(), 70u) << i;
    for (const auto turn : {cv::ROTATE_90_CLOCKWISE, cv::ROTATE_180, cv::ROTATE_90_COUNTERCLOCKWISE}) {
      cv::Mat turned;
      cv::rotate(as_mat(upright.view()), turned, turn);
      const auto points = find_target(as_view(turned), kCircles);
      ASSERT_EQ(points.size(), 70u) << i << " by " << turn;
      // The axis to the next row is to the right of the axis to the next column: not mirrored.
      const auto at = [&](double x, double y) {
        return *std::ranges::find_if(
            points, [&](const TargetPoint& p) { return std::hypot(p.mm_x - x, p.mm_y - y) < 1e-9; });
      };
      const TargetPoint origin = at(0, 0), column = at(5, 0), row = at(0, 5);
      EXPECT_GT((column.x - origin.x) * (row.y - origin.y) - (column.y - origin.y) * (row.x - origin.x), 0);
    }
  }
}

TEST_F(Calibrate, NamesAMirroredTarget) {
  CalibrationJob job;
  job.target = {TargetPattern::acircles, 5, 8, 4};
  const Image image = render(kLens, {{0.1, -0.2, 0.05}, {-20, -14, 110}}, job.target, 1, 3);
  job.plane = write("right", image);
  EXPECT_EQ(calibrate(job).plane->image.problem, "");
  cv::Mat mirrored;
  cv::flip(as_mat(image.view()), mirrored, 1);
  const fs::path path = folder_ / "mirrored.png";
  write_image(path, as_view(mirrored));
  job.plane = path.string();
  try {
    calibrate(job);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("mirrored"), std::string::npos) << error.what();
  }
}

TEST_F(Calibrate, RefusesWhatGivesNoCamera) {
  CalibrationJob job;
  EXPECT_THROW(calibrate(job), UsageError);  // no target
  job.target = kBoard;
  EXPECT_THROW(calibrate(job), UsageError);  // no images
  Image blank(kImage, ScalarType::u8);
  job.images = {write("a", blank), write("b", blank), write("c", blank)};
  EXPECT_THROW(calibrate(job), UsageError);  // no target in any
  job.images = {};
  job.plane = write("d", blank);
  EXPECT_THROW(calibrate(job), FileError);
  job.plane = write("small", Image({320, 200}, ScalarType::u8));
  job.camera = CameraParameters{kImage, kLens, {}};
  EXPECT_THROW(calibrate(job), Error);
  job.target.rows = job.target.columns;
  EXPECT_FALSE(job.validate().empty());
  EXPECT_FALSE((Target{TargetPattern::charuco, 8, 6, 5, 6}.validate().empty()));
  EXPECT_FALSE((Target{TargetPattern::charuco, 8, 6, 5, 3, "9X9_50"}.validate().empty()));
  EXPECT_TRUE((Target{TargetPattern::charuco, 8, 6, 5, 3}.validate().empty()));
}

TEST_F(Calibrate, FindsNothingInTinyImages) {
  std::mt19937 random(3);
  for (const TargetPattern pattern : {TargetPattern::checkerboard, TargetPattern::circles,
                                      TargetPattern::acircles, TargetPattern::charuco, TargetPattern::rings})
    for (const Size size :
         {Size{1, 1}, Size{40, 1}, Size{3, 70}, Size{15, 15}, Size{16, 16}, Size{23, 17}, Size{33, 40}}) {
      Image noise(size, ScalarType::u8);
      for (int y = 0; y < size.height; ++y)
        for (int x = 0; x < size.width; ++x)
          noise.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(random() % 256);
      EXPECT_TRUE(find_target(noise, {pattern, 4, 3, 5, 3}).empty());
    }
}

TEST_F(Calibrate, TakesBrightCirclesAndSixteenBits) {
  Image image = render(kLens, kFlat, kCircles, 1, 1), deep(kImage, ScalarType::u16);
  for (int y = 0; y < kImage.height; ++y)
    for (int x = 0; x < kImage.width; ++x)
      deep.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(4000 - 9 * image.row<std::uint8_t>(y)[x]);
  const auto dark = find_target(image, kCircles), bright = find_target(deep, kCircles);
  ASSERT_EQ(dark.size(), 70u);
  ASSERT_EQ(bright.size(), 70u);
  for (std::size_t k = 0; k < 70; ++k) EXPECT_NEAR(dark[k].x, bright[k].x, 0.05);
}

TEST_F(Calibrate, DrawsItsResiduals) {
  const Calibration found = calibrate(job_of(kBoard, 3));
  write_residual_picture(folder_ / "residuals.png", found);
  EXPECT_EQ(read_image(folder_ / "residuals.png").width(), 1200);
}

}  // namespace
}  // namespace dic

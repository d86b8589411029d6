#include <gtest/gtest.h>
#include <unistd.h>

#include <Eigen/Dense>
#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/opencv.hpp>
#include <dic/refine_rig.hpp>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <random>

#include "rendered_target.hpp"

// Two cameras of known geometry that see targets.
namespace dic {
namespace {

namespace fs = std::filesystem;

constexpr Size kImage = {1000, 800};
const Lens kLeft = {2500, 2501.5, 503.8, 396.4, -0.11, 0.16, 0.0006, -0.0004};
const Lens kRight = {2520, 2518.75, 493.8, 401.9, -0.09, 0.12, -0.0005, 0.0003};
const cv::Vec3d kTurn = {0.011, 0.43, -0.014}, kShift = {-212, 9, 54};
const Target kBoard = {TargetPattern::checkerboard, 12, 9, 10};
const Target kRings = {TargetPattern::rings, 6, 0, 14};

cv::Matx33d rotation_of(const cv::Vec3d& turn) {
  cv::Matx33d matrix;
  cv::Rodrigues(turn, matrix);
  return matrix;
}

/// The pose in the right camera of a target in the left one.
Pose in_right(const Pose& left) {
  const cv::Matx33d turn = rotation_of(kTurn) * rotation_of(left.turn);
  Pose right;
  cv::Rodrigues(turn, right.turn);
  right.shift = rotation_of(kTurn) * left.shift + kShift;
  return right;
}

/// Tilted by up to 25 degrees, within both images.
Pose random_pose(const Target& target, std::mt19937& random, double distance = 505) {
  std::uniform_real_distribution<double> even(-1, 1);
  const double columns = target.pattern == TargetPattern::rings ? 6 : target.columns - 1;
  const double rows = target.pattern == TargetPattern::rings ? 4 : target.rows - 1;
  Pose pose;
  pose.turn = {0.4 * even(random), 0.35 * even(random), 0.3 * even(random)};
  pose.shift =
      cv::Vec3d(18 * even(random), 14 * even(random), distance + 25 * even(random)) -
      rotation_of(pose.turn) * cv::Vec3d(columns / 2 * target.square_mm, rows / 2 * target.square_mm, 0);
  return pose;
}

class CalibrateStereo : public testing::Test {
 protected:
  CalibrateStereo() { fs::create_directories(folder_); }
  ~CalibrateStereo() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const Image& image, const char* ending = ".png") const {
    const fs::path path = folder_ / (name + ending);
    if (std::string(ending) == ".png")
      write_image(path, image);
    else
      cv::imwrite(path.string(), as_mat(image.view()), {cv::IMWRITE_JPEG_QUALITY, 90});
    return path.string();
  }
  StereoCalibrationJob job_of(const Target& target, int count, const char* ending = ".png",
                              double irregular_mm = 0) const {
    StereoCalibrationJob job;
    job.target = target;
    std::mt19937 random(11);
    for (int i = 0; i < count; ++i) {
      const Pose pose = random_pose(target, random);
      const auto number = static_cast<unsigned>(i);
      // The right camera is exposed less.
      job.left.push_back(
          write("l" + std::to_string(i),
                RenderedTarget{kImage, 1, number, 220, 8, irregular_mm}.seen(kLeft, pose, target), ending));
      job.right.push_back(write(
          "r" + std::to_string(i),
          RenderedTarget{kImage, 1, 100 + number, 150, 8, irregular_mm}.seen(kRight, in_right(pose), target),
          ending));
    }
    return job;
  }
  fs::path folder_ =
      fs::temp_directory_path() / ("dic_calibrate_stereo_" + std::to_string(getpid()) + "_" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

/// Positions that a rig gives to exact points of a box of 160 x 120 x 50 mm.
struct Quality {
  double epipolar_px = 0;  ///< root mean square
  double scale_ppm = 0, shape_um = 0;

  explicit Quality(const CameraRig& rig) {
    const Camera a({kImage, kLeft, {}}), b({kImage, kRight, {}});
    const Camera found_a(rig.cameras[0].camera), found_b(rig.cameras[1].camera);
    const cv::Matx33d r(rig.cameras[1].rotation.data());
    const cv::Vec3d t(rig.cameras[1].translation_mm.data());
    std::vector<Eigen::Vector3d> truth, found;
    double squares = 0;
    for (int k = -1; k <= 1; ++k)
      for (int j = -3; j <= 3; ++j)
        for (int i = -4; i <= 4; ++i) {
          const cv::Vec3d p(20 * i, 20 * j, 505 + 25 * k), q = rotation_of(kTurn) * p + kShift;
          const auto seen = [](const Camera& camera, const cv::Vec3d& at) {
            const Lens& l = *camera.parameters().lens;
            return camera.distort(l.fx * at[0] / at[2] + l.cx, l.fy * at[1] / at[2] + l.cy);
          };
          const auto left = seen(a, p), right = seen(b, q);
          if (left.x < 0 || left.y < 0 || left.x > 999 || left.y > 799) continue;
          if (right.x < 0 || right.y < 0 || right.x > 999 || right.y > 799) continue;
          squares += std::pow(epipolar_distance(found_a, found_b, rig.cameras[1], left, right), 2);
          truth.emplace_back(p[0], p[1], p[2]);
          found.push_back(triangulated(found_a, found_b, r, t, left, right));
        }
    const auto n = static_cast<double>(truth.size());
    epipolar_px = std::sqrt(squares / n);
    Eigen::Matrix3Xd from(3, truth.size()), to(3, truth.size());
    for (Eigen::Index k = 0; k < from.cols(); ++k)
      from.col(k) = found[static_cast<std::size_t>(k)], to.col(k) = truth[static_cast<std::size_t>(k)];
    const Eigen::Matrix4d similar = Eigen::umeyama(from, to, true);
    const double scale = std::cbrt(similar.topLeftCorner<3, 3>().determinant());
    scale_ppm = (scale - 1) * 1e6;
    const Eigen::Matrix3Xd rest =
        (similar.topLeftCorner<3, 3>() * from).colwise() + similar.topRightCorner<3, 1>() - to;
    shape_um = std::sqrt(rest.squaredNorm() / n) * 1000;
  }

  static Eigen::Vector3d triangulated(const Camera& a, const Camera& b, const cv::Matx33d& r,
                                      const cv::Vec3d& t, Camera::Point left, Camera::Point right) {
    const auto ray = [](const Camera& camera, Camera::Point p) {
      const Lens& l = *camera.parameters().lens;
      const auto ideal = camera.undistort(p.x, p.y);
      return Eigen::Vector3d((ideal.x - l.cx) / l.fx, (ideal.y - l.cy) / l.fy, 1);
    };
    Eigen::Matrix3d turn;
    for (int i = 0; i < 9; ++i) turn(i / 3, i % 3) = r.val[i];
    const Eigen::Vector3d u = ray(a, left), v = turn.transpose() * ray(b, right);
    const Eigen::Vector3d from = -(turn.transpose() * Eigen::Vector3d(t[0], t[1], t[2]));
    Eigen::Matrix<double, 3, 2> rays;
    rays << u, -v;
    const Eigen::Vector2d lengths = rays.colPivHouseholderQr().solve(from);
    return (u * lengths[0] + from + v * lengths[1]) / 2;
  }
};

void expect_good(const StereoCalibration& found, double epipolar, double scale, double shape) {
  for (const CalibrationPair& pair : found.pairs) EXPECT_EQ(pair.problem, "") << pair.left.file;
  const Quality quality(found.rig);
  EXPECT_LE(quality.epipolar_px, epipolar);
  EXPECT_LE(std::abs(quality.scale_ppm), scale);
  EXPECT_LE(quality.shape_um, shape);
  std::printf("rms %.4f px, epipolar %.4f px measured, %.4f px exact, scale %.1f ppm, shape %.2f um\n",
              found.rms, found.rig.epipolar_px, quality.epipolar_px, quality.scale_ppm, quality.shape_um);
}

TEST_F(CalibrateStereo, FifteenViewsOfABoard) {
  const StereoCalibration found = calibrate_stereo(job_of(kBoard, 15));
  expect_good(found, 0.005, 20, 3);
  EXPECT_LT(found.rms, 0.03);
  // The truth lies within the standard deviations.
  const auto names = rig_parameter_names(2);
  const auto deviation = [&](const std::string& name) {
    const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    return std::sqrt(found.rig.covariance[at * names.size() + at]);
  };
  EXPECT_LT(std::abs(found.rig.cameras[0].camera.lens->fx - kLeft.fx), 5 * deviation("camera0_fx"));
  EXPECT_LT(std::abs(found.rig.cameras[1].camera.lens->cy - kRight.cy), 5 * deviation("camera1_cy"));
  EXPECT_LT(std::abs(found.rig.cameras[1].translation_mm[0] - kShift[0]), 5 * deviation("camera1_tx"));
  EXPECT_EQ(deviation("camera0_k4"), 0);
  EXPECT_TRUE(found.rig.validate().empty());
  write_epipolar_picture(folder_ / "lines.png", found);
  EXPECT_EQ(read_image(folder_ / "lines.png").width(), 1600);
}

TEST_F(CalibrateStereo, RingsOfWhichSomeAreHiddenAndJpeg) {
  // Perspective moves the centroids of these dots by up to 0.1 px from their centres.
  const StereoCalibration found = calibrate_stereo(job_of(kRings, 8, ".jpg"));
  expect_good(found, 0.01, 60, 6);
}

TEST_F(CalibrateStereo, PrintWithErrorsIsFittedToo) {
  const StereoCalibration found = calibrate_stereo(job_of(kRings, 8, ".png", 0.03));
  EXPECT_NEAR(found.target_error_mm, 0.03, 0.006);
  EXPECT_LT(found.rms, 0.03);  // 0.1 px with a regular target
  expect_good(found, 0.01, 100, 15);
}

TEST_F(CalibrateStereo, Circles) {
  const StereoCalibration found = calibrate_stereo(job_of({TargetPattern::circles, 9, 7, 13}, 8));
  expect_good(found, 0.01, 60, 6);
}

TEST_F(CalibrateStereo, SaysWhatIsWrongWithThePairs) {
  StereoCalibrationJob job = job_of(kRings, 6);
  job.model = LensModel::k1k2;
  job.check_distance_mm = 71.4;  // of a target with a spacing of 14.28 mm
  const auto has = [](const std::vector<std::string>& warnings, const std::string& part) {
    return std::ranges::any_of(warnings,
                               [&](const auto& text) { return text.find(part) != std::string::npos; });
  };
  const StereoCalibration found = calibrate_stereo(job);
  EXPECT_TRUE(has(found.warnings, "the spacing of the target is 14.2"));
  EXPECT_TRUE(has(found.warnings, "Only 6 pairs"));
  EXPECT_FALSE(has(found.warnings, "swapped"));
  EXPECT_NEAR(found.found_distance_mm, 70, 0.02);

  StereoCalibrationJob swapped = job;
  std::swap(swapped.left, swapped.right);
  swapped.check_distance_mm = 70;
  const StereoCalibration mirror = calibrate_stereo(swapped);
  EXPECT_TRUE(has(mirror.warnings, "swapped"));
  EXPECT_FALSE(has(mirror.warnings, "spacing"));

  StereoCalibrationJob one_wrong = job;
  one_wrong.right[2] = one_wrong.right[4];
  const StereoCalibration five = calibrate_stereo(one_wrong);
  EXPECT_NE(five.pairs[2].problem, "");
  EXPECT_LT(Quality(five.rig).shape_um, 40);

  std::ranges::rotate(job.right, job.right.begin() + 1);
  try {
    calibrate_stereo(job);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("l0.png fits"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("r0.png"), std::string::npos) << error.what();
  }
  job.right.pop_back();
  EXPECT_THROW(calibrate_stereo(job), UsageError);
}

TEST_F(CalibrateStereo, WithoutTiltTheFocalLengthsAreNotKnown) {
  StereoCalibrationJob job;
  job.target = kRings;
  for (int i = 0; i < 4; ++i) {
    const Pose pose = {{0, 0.215, 0}, {-35.0 + 3 * i, -28.0 + 4 * i, 480.0 + 15 * i}};
    const auto number = static_cast<unsigned>(i);
    job.left.push_back(
        write("l" + std::to_string(i), RenderedTarget{kImage, 2, number}.seen(kLeft, pose, kRings)));
    job.right.push_back(write("r" + std::to_string(i),
                              RenderedTarget{kImage, 2, 9 + number}.seen(kRight, in_right(pose), kRings)));
  }
  try {
    const StereoCalibration found = calibrate_stereo(job);
    EXPECT_TRUE(std::ranges::any_of(found.warnings,
                                    [](const auto& w) { return w.find("tilted") != std::string::npos; }));
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("add"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>

#include <cmath>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <opencv2/calib3d.hpp>
#include <sstream>

// Tests the maps of a camera against those of OpenCV, and camera files.
namespace dic {
namespace {

namespace fs = std::filesystem;

constexpr Size kImage = {1200, 900};
const Lens kBarrel = {1510, 1490, 612, 437, -0.21, 0.09, 0.0012, -0.0017, -0.02};
const Lens kRational = {900, 905, 590, 455, 0.31, 0.05, -0.0008, 0.0011, 0.01, 0.62, 0.13, 0.02};

/// A plane tilted by 20 and -14 degrees, turned by 7 degrees, 500 mm away.
cv::Matx33d plane_of(const Lens& lens) {
  const cv::Vec3d turn(0.35, -0.25, 0.12), shift(-60, -45, 500);
  cv::Matx33d r;
  cv::Rodrigues(turn, r);
  const cv::Matx33d k(lens.fx, 0, lens.cx, 0, lens.fy, lens.cy, 0, 0, 1);
  return k * cv::Matx33d(r(0, 0), r(0, 1), shift[0], r(1, 0), r(1, 1), shift[1], r(2, 0), r(2, 1), shift[2]);
}

CameraParameters tilted(const Lens& lens) {
  const cv::Matx33d h = plane_of(lens);
  SpecimenPlane plane;
  std::copy(h.val, h.val + 9, plane.px_from_mm.begin());
  return {kImage, lens, plane};
}

std::vector<cv::Point2d> places() {
  std::vector<cv::Point2d> all;
  for (double y = 0; y < kImage.height; y += 74.9)
    for (double x = 0; x < kImage.width; x += 99.9) all.emplace_back(x, y);
  return all;
}

class CameraLens : public testing::TestWithParam<Lens> {};
INSTANTIATE_TEST_SUITE_P(Models, CameraLens, testing::Values(kBarrel, kRational));

TEST_P(CameraLens, DistortsAndUndistortsLikeOpenCv) {
  const Lens& l = GetParam();
  const Camera camera({kImage, l, {}});
  const cv::Matx33d k(l.fx, 0, l.cx, 0, l.fy, l.cy, 0, 0, 1);
  const cv::Mat distortion = (cv::Mat_<double>(1, 8) << l.k1, l.k2, l.p1, l.p2, l.k3, l.k4, l.k5, l.k6);
  std::vector<cv::Point2d> ideal;
  cv::undistortPoints(places(), ideal, k, distortion, cv::noArray(), k,
                      cv::TermCriteria(cv::TermCriteria::COUNT | cv::TermCriteria::EPS, 200, 1e-13));
  std::vector<cv::Point3d> directions;
  for (const auto& p : ideal) directions.emplace_back((p.x - l.cx) / l.fx, (p.y - l.cy) / l.fy, 1);
  std::vector<cv::Point2d> seen;
  cv::projectPoints(directions, cv::Vec3d(), cv::Vec3d(), k, distortion, seen);
  for (std::size_t i = 0; i < ideal.size(); ++i) {
    const auto [x, y] = camera.undistort(places()[i].x, places()[i].y);
    EXPECT_NEAR(x, ideal[i].x, 1e-6);
    EXPECT_NEAR(y, ideal[i].y, 1e-6);
    const auto [sx, sy] = camera.distort(ideal[i].x, ideal[i].y);
    EXPECT_NEAR(sx, seen[i].x, 1e-9);
    EXPECT_NEAR(sy, seen[i].y, 1e-9);
  }
}

TEST_P(CameraLens, GoesThereAndBack) {
  const Camera camera(tilted(GetParam()));
  for (const auto& p : places()) {
    const auto corrected = camera.undistort(p.x, p.y);
    const auto seen = camera.distort(corrected.x, corrected.y);
    EXPECT_NEAR(seen.x, p.x, 1e-9);
    EXPECT_NEAR(seen.y, p.y, 1e-9);
  }
}

TEST_P(CameraLens, JacobianIsTheDerivative) {
  const Camera camera(tilted(GetParam()));
  constexpr double h = 1e-3;
  for (const auto& p : places()) {
    const auto j = camera.undistort_with_jacobian(p.x, p.y).jacobian;
    const auto left = camera.undistort(p.x - h, p.y), right = camera.undistort(p.x + h, p.y);
    const auto up = camera.undistort(p.x, p.y - h), down = camera.undistort(p.x, p.y + h);
    EXPECT_NEAR(j.xx, (right.x - left.x) / (2 * h), 1e-6);
    EXPECT_NEAR(j.yx, (right.y - left.y) / (2 * h), 1e-6);
    EXPECT_NEAR(j.xy, (down.x - up.x) / (2 * h), 1e-6);
    EXPECT_NEAR(j.yy, (down.y - up.y) / (2 * h), 1e-6);
  }
}

TEST_P(CameraLens, DistancesInThePlaneAreMillimetres) {
  const Lens& l = GetParam();
  const Camera camera(tilted(l));
  const cv::Matx33d h = plane_of(l);
  const auto corrected = [&](double mm_x, double mm_y) {
    const cv::Vec3d ideal = h * cv::Vec3d(mm_x, mm_y, 1);
    const auto seen = Camera({kImage, l, {}}).distort(ideal[0] / ideal[2], ideal[1] / ideal[2]);
    return camera.undistort(seen.x, seen.y);
  };
  const auto a = corrected(0, 0), b = corrected(30, 0), c = corrected(20, 40);
  EXPECT_NEAR(std::hypot(a.x - b.x, a.y - b.y) * camera.scale_mm_per_px(), 30, 1e-7);
  EXPECT_NEAR(std::hypot(a.x - c.x, a.y - c.y) * camera.scale_mm_per_px(), std::hypot(20, 40), 1e-7);
}

TEST_P(CameraLens, TheMiddleOfTheImageStaysWhereItIs) {
  const Camera camera(tilted(GetParam()));
  const double cx = (kImage.width - 1) / 2.0, cy = (kImage.height - 1) / 2.0;
  const auto middle = camera.undistort(cx, cy);
  EXPECT_NEAR(middle.x, cx, 1e-9);
  EXPECT_NEAR(middle.y, cy, 1e-9);
  const auto j = camera.undistort_with_jacobian(cx, cy).jacobian;
  EXPECT_NEAR(j.xx * j.yy - j.xy * j.yx, 1, 1e-9);
  EXPECT_NEAR(j.xy, j.yx, 1e-9);
  EXPECT_GT(j.xx, 0);
}

TEST(Camera, ThatSeesThePlanePerpendicularlyIsTheIdentity) {
  // A plane with 0.05 mm per px, turned by 30 degrees: it neither turns nor scales the measurement.
  const double c = 20 * std::cos(0.52), s = 20 * std::sin(0.52);
  const Camera camera({kImage, {}, SpecimenPlane{{c, -s, 100, s, c, 50, 0, 0, 1}}});
  EXPECT_NEAR(camera.scale_mm_per_px(), 0.05, 1e-12);
  for (const auto& p : places()) {
    const auto corrected = camera.undistort(p.x, p.y);
    EXPECT_NEAR(corrected.x, p.x, 1e-9);
    EXPECT_NEAR(corrected.y, p.y, 1e-9);
  }
}

TEST(Camera, HasTheSameMapsForHomographiesOfEitherSign) {
  CameraParameters parameters = tilted(kBarrel);
  const Camera camera(parameters);
  for (double& value : parameters.plane->px_from_mm) value *= -3;
  const Camera other(parameters);
  EXPECT_NEAR(other.undistort(17, 800).x, camera.undistort(17, 800).x, 1e-8);
  EXPECT_NEAR(other.scale_mm_per_px(), camera.scale_mm_per_px(), 1e-12);
}

TEST(Camera, RefusesWhatCannotBeUndone) {
  const auto problem = [](const CameraParameters& parameters) {
    const auto all = parameters.validate();
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(problem(tilted(kBarrel)), "");
  EXPECT_NE(problem({}).find("size"), std::string::npos);
  Lens folded = kBarrel;
  folded.k1 = -1.9;
  EXPECT_NE(problem({kImage, folded, {}}).find("folds"), std::string::npos);
  EXPECT_NE(problem({kImage, Lens{-1, 1, 0, 0}, {}}).find("Focal"), std::string::npos);
  EXPECT_NE(problem({kImage, Lens{1000, 1000, NAN, 0}, {}}).find("finite"), std::string::npos);
  EXPECT_NE(problem({kImage, {}, SpecimenPlane{{1, 0, 0, 1, 0, 0, 0, 0, 1}}}).find("inverse"),
            std::string::npos);
  EXPECT_NE(problem({kImage, {}, SpecimenPlane{{-1, 0, 0, 0, 1, 0, 0, 0, 1}}}).find("behind"),
            std::string::npos);
  EXPECT_NE(problem({kImage, {}, SpecimenPlane{{1, 0, 0, 0, 1, 0, 0.002, 0, 1}}}).find("horizon"),
            std::string::npos);
  EXPECT_THROW(Camera({}), UsageError);
}

/// A field measured in image pixels while the material moves by an affine motion in corrected coordinates.
class CorrectedField : public testing::Test {
 protected:
  static constexpr double kUx = 0.012, kUy = -0.004, kVx = 0.021, kVy = -0.008;

  static Camera::Point moved(Camera::Point p) {
    return {p.x + 3.1 + kUx * p.x + kUy * p.y, p.y - 1.7 + kVx * p.x + kVy * p.y};
  }

  CorrectedField() {
    Grid grid{100, 90, 17, 50, 40, {}};
    grid.inside.assign(grid.nodes(), 1);
    field_ = Field(grid);
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        const auto to = moved(camera_.undistort(grid.x(i), grid.y(j)));
        const auto seen = camera_.distort(to.x, to.y);
        field_.u[k] = seen.x - grid.x(i);
        field_.v[k] = seen.y - grid.y(j);
        field_.status[k] = Status::ok;
        field_.sigma_u[k] = 0.01f;
        field_.sigma_v[k] = 0.02f;
      }
  }
  void correct() {
    correct_field(field_, camera_,
                  std::make_shared<const NodePositions>(corrected_nodes(field_.grid(), camera_)), 2);
  }

  Camera camera_{tilted(kBarrel)};
  Field field_;
};

TEST_F(CorrectedField, HasTheMotionOfTheMaterial) {
  correct();
  for (int j = 0; j < field_.grid().ny; ++j)
    for (int i = 0; i < field_.grid().nx; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * field_.grid().nx + i;
      const auto to = moved({field_.x(i, j), field_.y(i, j)});
      ASSERT_NEAR(field_.u[k], to.x - field_.x(i, j), 1e-8);
      ASSERT_NEAR(field_.v[k], to.y - field_.y(i, j), 1e-8);
    }
}

TEST_F(CorrectedField, HasExactlyTheStrainOfAnAffineMotion) {
  for (const std::size_t k : {333u, 512u, 513u, 562u, 914u}) {  // makes windows with holes
    field_.status[k] = Status::low_correlation;
    field_.u[k] = field_.v[k] = NAN;
  }
  correct();
  const StrainField strain = compute_strain(field_, {7, StrainMeasure::engineering}, 2);
  int found = 0;
  for (std::size_t k = 0; k < strain.exx.size(); ++k) {
    if (std::isnan(strain.exx[k])) continue;
    ++found;
    ASSERT_NEAR(strain.exx[k], kUx, 1e-8);
    ASSERT_NEAR(strain.eyy[k], kVy, 1e-8);
    ASSERT_NEAR(strain.exy[k], (kUy + kVx) / 2, 1e-8);
  }
  EXPECT_GT(found, 1900);
}

TEST_F(CorrectedField, HasTheScatterOfItsPoints) {
  const Field before = field_;
  correct();
  const std::size_t k = 3 * 50 + 4;
  double uu = 0, vv = 0;
  constexpr int n = 40000;
  std::uint64_t state = 1;
  const auto uniform = [&] {  // a uniform number of variance 1
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<double>(state >> 11) * 0x1p-53 - 0.5) * std::sqrt(12);
  };
  const double x = field_.grid().x(4) + before.u[k], y = field_.grid().y(3) + before.v[k];
  const auto mean = camera_.undistort(x, y);
  for (int i = 0; i < n; ++i) {
    const double du = 0.01 * uniform(), dv = 0.02 * uniform();
    const auto p = camera_.undistort(x + du, y + dv);
    uu += std::pow(p.x - mean.x, 2), vv += std::pow(p.y - mean.y, 2);
  }
  EXPECT_NEAR(field_.sigma_u[k] / std::sqrt(uu / n), 1, 0.02);
  EXPECT_NEAR(field_.sigma_v[k] / std::sqrt(vv / n), 1, 0.02);
}

TEST_F(CorrectedField, KeepsTheDisplacementInTheImage) {
  const Field before = field_;
  correct();
  EXPECT_EQ(field_.image_u, before.u);
  EXPECT_EQ(field_.image_v, before.v);
  EXPECT_THROW(correct(), UsageError);
}

TEST_F(CorrectedField, LosesPointsWhereTheCameraHasNoMap) {
  field_.u[7] = 1e6;
  correct();
  EXPECT_EQ(field_.status[7], Status::out_of_image);
  EXPECT_TRUE(std::isnan(field_.u[7]) && std::isnan(field_.zncc[7]));
  EXPECT_EQ(field_.status[8], Status::ok);
}

class CameraFile : public testing::Test {
 protected:
  ~CameraFile() override { fs::remove(path_); }
  /// The error message from reading this text; empty if it is read.
  std::string message(const std::string& text) const {
    std::ofstream(path_) << text;
    try {
      read_camera(path_);
      return {};
    } catch (const FileError& error) {
      return error.what();
    }
  }
  const fs::path path_ = fs::temp_directory_path() / ("dic_camera_" + std::to_string(getpid()) + ".json");
};

TEST_F(CameraFile, KeepsEveryBit) {
  const CameraParameters written = tilted(kRational);
  write_camera(path_, written, R"({"rms_px": 0.03})");
  const CameraParameters read = read_camera(path_).parameters();
  EXPECT_EQ(read.image, written.image);
  EXPECT_EQ(read.plane->px_from_mm, written.plane->px_from_mm);
  EXPECT_EQ(read.lens->fx, written.lens->fx);
  EXPECT_EQ(read.lens->k6, written.lens->k6);
  EXPECT_EQ(read.lens->p2, written.lens->p2);
}

TEST_F(CameraFile, OfOneHomographyOrOneLens) {
  write_camera(path_, {kImage, {}, SpecimenPlane{{20, 0, 0, 0, 20, 0, 0, 0, 1}}});
  EXPECT_FALSE(read_camera(path_).parameters().lens);
  write_camera(path_, {kImage, kBarrel, {}});
  EXPECT_FALSE(read_camera(path_).parameters().plane);
}

TEST_F(CameraFile, SaysWhatIsWrong) {
  const std::string size = R"("dic_camera": 1, "image_width": 1200, "image_height": 900)";
  EXPECT_EQ(message("{" + size + "}"), "");
  EXPECT_NE(message("fx = 3").find("not JSON"), std::string::npos);
  EXPECT_NE(message("").find("cannot be read"), std::string::npos);
  EXPECT_NE(message(R"({"dic_camera": 2})").find("version 2"), std::string::npos);
  EXPECT_NE(message(R"({"dic_camera": 1, "image_width": 3})").find("\"image_height\" is missing"),
            std::string::npos);
  EXPECT_NE(message("{" + size + R"(, "lense": {}})").find("no key \"lense\""), std::string::npos);
  EXPECT_NE(message("{" + size + R"(, "lens": {"fx": 1}})").find("\"fy\" is missing"), std::string::npos);
  EXPECT_NE(message("{" + size + R"(, "lens": {"fx": "1"}})").find("\"fx\" must be a number"),
            std::string::npos);
  EXPECT_NE(message("{" + size + R"(, "plane": {"px_from_mm": [[1, 2], [3, 4]]}})").find("three rows"),
            std::string::npos);
  EXPECT_NE(message(R"({"dic_camera": 1, "image_width": 1e3, "image_height": 9})").find("whole number"),
            std::string::npos);
  EXPECT_THROW(read_camera("/no/such/camera.json"), FileError);
}

}  // namespace
}  // namespace dic

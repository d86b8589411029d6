#include "stereo/epipolar_line.hpp"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

// Tests the places of an epipolar line against positions in space that are projected into both images here.
namespace dic {
namespace {

constexpr Size kImage{1000, 800};
constexpr double kSpacing = 4;

stereo::LensTerms lens_of(double fx, double fy, double cx, double cy, double k1, double p1) {
  stereo::LensTerms lens{};
  lens.fx = fx, lens.fy = fy, lens.cx = cx, lens.cy = cy, lens.k1 = k1, lens.p1 = p1;
  return lens;
}

/// A rig of two cameras, and their projections by the formulas of the lens model alone.
struct Rig {
  stereo::CameraPair cameras{};
  Eigen::Matrix3d rotation;
  Eigen::Vector3d translation;

  Rig(double angle_deg, double k1, double p1) {
    cameras.left = lens_of(2500, 2480, 505, 395, k1, p1);
    cameras.right = lens_of(2400, 2410, 490, 410, -k1, p1);
    const double angle = angle_deg * std::numbers::pi / 180;
    rotation = (Eigen::AngleAxisd(-angle, Eigen::Vector3d::UnitY()) *
                Eigen::AngleAxisd(0.01, Eigen::Vector3d::UnitZ()))
                   .toRotationMatrix();
    translation = Eigen::Vector3d(0, 1, 500) - rotation * Eigen::Vector3d(0, 0, 500);
    for (int i = 0; i < 3; ++i) {
      cameras.translation[i] = translation[i];
      for (int j = 0; j < 3; ++j) cameras.rotation(i, j) = rotation(i, j);
    }
  }

  static Eigen::Vector2d image_of(const stereo::LensTerms& lens, const Eigen::Vector3d& position) {
    const double a = position.x() / position.z(), b = position.y() / position.z(), r2 = a * a + b * b;
    return {lens.cx + lens.fx * (a * (1 + lens.k1 * r2) + 2 * lens.p1 * a * b),
            lens.cy + lens.fy * (b * (1 + lens.k1 * r2) + lens.p1 * (r2 + 2 * b * b))};
  }
  std::vector<track::Place> line_of(const Eigen::Vector3d& position) const {
    const Eigen::Vector2d left = image_of(cameras.left, position);
    return stereo::epipolar_line(cameras, kImage, left.x(), left.y(), kSpacing);
  }
  Eigen::Vector2d right_image_of(const Eigen::Vector3d& position) const {
    return image_of(cameras.right, rotation * position + translation);
  }
};

/// The distance of a point from the polyline through the places, px.
double distance_from(const std::vector<track::Place>& places, const Eigen::Vector2d& point) {
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k + 1 < places.size(); ++k) {
    const Eigen::Vector2d from(places[k].x, places[k].y), to(places[k + 1].x, places[k + 1].y);
    const double along = std::clamp((point - from).dot(to - from) / (to - from).squaredNorm(), 0.0, 1.0);
    nearest = std::min(nearest, (from + along * (to - from) - point).norm());
  }
  return nearest;
}

TEST(EpipolarLine, PassesThroughTheImagesOfAllDepthsInSmallSteps) {
  for (const double angle : {5.0, 25.0, 60.0})
    for (const double k1 : {0.0, -0.2, 0.3}) {
      const Rig rig(angle, k1, k1 / 300);
      int seen = 0;
      for (const double z : {420.0, 480.0, 500.0, 530.0, 600.0})
        for (const double x : {-60.0, 0.0, 45.0})
          for (const double y : {-50.0, 5.0, 40.0}) {
            const Eigen::Vector3d position(x, y, z);
            const Eigen::Vector2d right = rig.right_image_of(position);
            if (right.x() < kSpacing || right.y() < kSpacing || right.x() > kImage.width - 1 - kSpacing ||
                right.y() > kImage.height - 1 - kSpacing)
              continue;
            ++seen;
            const std::vector<track::Place> places = rig.line_of(position);
            ASSERT_GE(places.size(), 2u);
            // A chord of 4 px deviates by far less than 0.01 px from lines that these lenses bend.
            EXPECT_LT(distance_from(places, right), 0.01)
                << "angle " << angle << ", k1 " << k1 << ", position " << position.transpose();
            for (std::size_t k = 1; k < places.size(); ++k)
              ASSERT_LE(std::hypot(places[k].x - places[k - 1].x, places[k].y - places[k - 1].y),
                        1.2 * kSpacing);  // lenses stretch by up to a fifth
          }
      EXPECT_GE(seen, 9) << "angle " << angle << ", k1 " << k1;
    }
}

TEST(EpipolarLine, EndsAtTheImageOfAnInfiniteDepthAndAtTheBorder) {
  const Rig rig(25, 0, 0);
  const Eigen::Vector3d direction(0.02, -0.03, 1);
  const std::vector<track::Place> places = rig.line_of(direction * 500);
  ASSERT_FALSE(places.empty());
  for (const track::Place& place : places) {
    EXPECT_GE(place.x, 0);
    EXPECT_GE(place.y, 0);
    EXPECT_LE(place.x, kImage.width - 1);
    EXPECT_LE(place.y, kImage.height - 1);
  }
  const Rig parallel(0.5, 0, 0);  // the infinite depth is inside the image
  const Eigen::Vector2d end = Rig::image_of(parallel.cameras.right, parallel.rotation * direction);
  const std::vector<track::Place> to_end = parallel.line_of(direction * 500);
  ASSERT_FALSE(to_end.empty());
  EXPECT_LT(std::hypot(to_end.front().x - end.x(), to_end.front().y - end.y()), 1e-6);
}

TEST(EpipolarLine, IsEmptyWhereTheOtherCameraSeesNothingOfIt) {
  Rig rig(25, 0, 0);
  rig.cameras.translation = {{{0}, {-400}, {0}}};  // far above: the line runs outside of the image
  rig.cameras.rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  rig.cameras.right.cy = -4000;
  EXPECT_TRUE(stereo::epipolar_line(rig.cameras, kImage, 500, 400, kSpacing).empty());
}

}  // namespace
}  // namespace dic

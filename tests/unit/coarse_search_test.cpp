#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "support/speckle.hpp"
#include "track/cpu/host_coarse_search.hpp"

// Tests the coarse-to-fine search: subsets that the ROI cuts, outliers among the nodes, and known motions.
namespace dic::track {
namespace {

// ---- subsets that are cut ----

constexpr int kWidth = 60, kHeight = 45, kRadius = 6;

/// A ROI of random discs and half-planes, so that its edges cut subsets in every way.
Image random_roi(unsigned seed) {
  std::mt19937 random(seed);
  const int x0 = static_cast<int>(random() % kWidth), y0 = static_cast<int>(random() % kHeight),
            radius = 5 + static_cast<int>(random() % 12), right = 30 + static_cast<int>(random() % 30);
  Image roi({kWidth, kHeight}, ScalarType::u8);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      roi.row<std::uint8_t>(y)[x] = x <= right && std::hypot(x - x0, y - y0) > radius ? 255 : 0;
  return roi;
}

struct Counted {
  int left = 99, right = -99, top = 99, bottom = -99, pixels = 0;
};
Counted count_inside(const Image& roi, int x, int y) {
  Counted out;
  for (int b = std::max(0, y - kRadius); b <= std::min(kHeight - 1, y + kRadius); ++b)
    for (int a = std::max(0, x - kRadius); a <= std::min(kWidth - 1, x + kRadius); ++a) {
      if (!roi.row<std::uint8_t>(b)[a]) continue;
      out.left = std::min(out.left, a - x);
      out.right = std::max(out.right, a - x);
      out.top = std::min(out.top, b - y);
      out.bottom = std::max(out.bottom, b - y);
      ++out.pixels;
    }
  return out;
}

std::vector<int> every_x() {
  std::vector<int> out;
  for (int k = 0; k < kWidth * kHeight; ++k) out.push_back(k % kWidth);
  return out;
}
std::vector<int> every_y() {
  std::vector<int> out;
  for (int k = 0; k < kWidth * kHeight; ++k) out.push_back(k / kWidth);
  return out;
}

TEST(SubsetShapes, AreTheBoxesOfWhatIsInside) {
  const std::vector<int> x = every_x(), y = every_y();
  core::ThreadPool pool(3);
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Image roi = random_roi(seed);
    const SubsetShapes shapes(kWidth, kHeight, x, y, kRadius, roi, pool);
    for (std::int64_t k = 0; k < shapes.size(); ++k) {
      const Counted want = count_inside(roi, x[k], y[k]);
      ASSERT_NEAR(shapes.coverage(k), want.pixels / 169.0, 1e-6);
      if (want.pixels == 0) continue;
      const SubsetShape& s = shapes.shape(k);
      ASSERT_EQ(s.left, want.left) << "at " << x[k] << ", " << y[k];
      ASSERT_EQ(s.top, want.top);
      ASSERT_EQ(s.width, want.right - want.left + 1);
      ASSERT_EQ(s.height, want.bottom - want.top + 1);
      ASSERT_EQ(s.masked, want.pixels < s.area());
      ASSERT_EQ(shapes.position(k).x, x[k] + want.left);
      ASSERT_EQ(shapes.position(k).y, y[k] + want.top);
    }
  }
}

TEST(SubsetShapes, AreTheSameForARectangleAndItsMask) {
  const std::vector<int> x = every_x(), y = every_y();
  core::ThreadPool pool(1);
  for (const Roi::Rect& rect : {Roi::Rect{0, 0, kWidth, kHeight}, {7, 3, 31, 40}, {50, 20, 4, 9}}) {
    Image roi({kWidth, kHeight}, ScalarType::u8);
    for (int k = 0; k < kWidth * kHeight; ++k)
      roi.row<std::uint8_t>(y[k])[x[k]] =
          x[k] >= rect.x && x[k] < rect.x + rect.width && y[k] >= rect.y && y[k] < rect.y + rect.height;
    ASSERT_TRUE(analysis::fills(roi, analysis::bounding_box(roi)));
    const SubsetShapes got(rect, x, y, kRadius), want(kWidth, kHeight, x, y, kRadius, roi, pool);
    for (std::int64_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(got.coverage(k), want.coverage(k));
      if (want.coverage(k) == 0) continue;
      ASSERT_EQ(got.shape(k), want.shape(k)) << "at " << x[k] << ", " << y[k];
    }
    roi.row<std::uint8_t>(rect.y + 1)[rect.x + 1] = 0;
    EXPECT_FALSE(analysis::fills(roi, analysis::bounding_box(roi)));
  }
}

TEST(SubsetShapes, AreVisitedOneAfterTheOther) {
  const std::vector<int> x = every_x(), y = every_y();
  core::ThreadPool pool(1);
  const SubsetShapes shapes(kWidth, kHeight, x, y, kRadius, random_roi(7), pool);
  std::vector<std::int64_t> which;
  for (std::int64_t k = shapes.size() - 1; k >= 0; k -= 3) which.push_back(k);
  std::set<std::size_t> visited;
  std::set<SubsetShape> seen;
  shapes.by_shape(which, [&](const SubsetShape& shape, std::span<const std::size_t> members) {
    EXPECT_TRUE(seen.insert(shape).second) << "a shape was visited twice";
    EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
    for (const std::size_t k : members) {
      EXPECT_EQ(shapes.shape(which[k]), shape);
      EXPECT_TRUE(visited.insert(k).second);
    }
  });
  EXPECT_EQ(visited.size(), which.size());
}

// ---- outliers ----

/// A search that finds given displacements, px of the full image.
class Oracle : public PyramidSearch {
 public:
  double u = 40, v = -24;
  std::set<std::int64_t> wrong;  ///< nodes of level 1 that are found at a wrong place
  int calls = 0;

  std::vector<FoundShift> around(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                                 std::span<const Prediction> predictions, int range) override {
    ++calls;
    std::vector<FoundShift> out;
    for (std::size_t k = 0; k < which.size(); ++k) {
      const double du = u / lattice.field.reduction - predictions[k].u,
                   dv = v / lattice.field.reduction - predictions[k].v;
      FoundShift found{predictions[k].u + std::clamp<double>(du, -range, range),
                       predictions[k].v + std::clamp<double>(dv, -range, range), 0.9f,
                       std::abs(du) >= range || std::abs(dv) >= range};
      if (lattice.level == 1 && wrong.contains(which[k])) found = {found.u + 30, found.v, 0.9f, false};
      out.push_back(found);
    }
    return out;
  }
  std::vector<FoundShift> everywhere(const CoarseLattice& lattice) override {
    const double error = 4;  // px of the reduced image: more than a finer level may correct in one step
    return std::vector<FoundShift>(lattice.searched.size(), {(u / lattice.field.reduction) + error,
                                                             v / lattice.field.reduction, 0.9f, false});
  }
};

TEST(CoarseSearch, HasNoMasksOfRectangles) {
  Image roi({400, 300}, ScalarType::u8);
  for (int y = 20; y < 290; ++y) std::fill_n(roi.row<std::uint8_t>(y) + 30, 351, std::uint8_t{1});
  core::ThreadPool pool(1);
  CoarseSearch rectangle(400, 300, roi, pool);
  roi.row<std::uint8_t>(100)[100] = 0;
  CoarseSearch holed(400, 300, roi, pool);
  Oracle oracle;
  const CoarseField got = rectangle.run(oracle), want = holed.run(oracle);
  EXPECT_TRUE(rectangle.roi(1).empty());
  EXPECT_FALSE(holed.roi(1).empty());
  EXPECT_EQ(rectangle.levels(), holed.levels());
  EXPECT_EQ(got.x0, want.x0);
  EXPECT_EQ(got.y0, want.y0);
  EXPECT_EQ(got.nx, want.nx);
  EXPECT_EQ(got.ny, want.ny);
  EXPECT_EQ(got.u, want.u);
  EXPECT_EQ(got.v, want.v);
}

TEST(CoarseSearch, FollowsPeaksThatLieOnTheBorder) {
  core::ThreadPool pool(1);
  CoarseSearch search(400, 400, {}, pool);
  Oracle oracle;
  const CoarseField field = search.run(oracle);
  EXPECT_EQ(search.levels(), 3);
  EXPECT_EQ(field.reduction, 2);
  EXPECT_EQ(field.confidence, 1);
  EXPECT_GT(oracle.calls, 1);
  EXPECT_NEAR(field.at(200, 200).u, 40, 1e-4);
  EXPECT_NEAR(field.at(10, 390).v, -24, 1e-4);
}

TEST(CoarseSearch, FillsNodesThatContradictTheirNeighbours) {
  core::ThreadPool pool(1);
  CoarseSearch search(400, 400, {}, pool);
  Oracle oracle;
  oracle.wrong = {5, 40, 41, 100};
  const CoarseField field = search.run(oracle);
  EXPECT_LT(field.confidence, 1);
  EXPECT_GT(field.confidence, 0.9);
  for (const float u : field.u) EXPECT_NEAR(u, 20, 1e-4);
}

// ---- images ----

void expect_found(int width, int height, ScalarType type, double u, double v, const Image& roi) {
  const test::Speckle speckle(width, height, 4, 3, 90);
  const auto moved = [&](double du, double dv, unsigned seed) {
    Image image =
        test::image_of(width, height, [&](int x, int y) { return test::grey_of(speckle(x - du, y - dv)); });
    image = test::noisy(image, 3, seed);
    if (type == ScalarType::u8) return test::converted<std::uint8_t>(image, type);
    if (type == ScalarType::u16) return test::converted<std::uint16_t>(image, type, 13);
    return image;
  };
  Correlator correlator("cpu", 1);
  core::ThreadPool pool(2);
  HostCoarseSearch search(moved(0, 0, 1), roi.empty() ? ImageView{} : roi.view(), pool);
  for (const double part : {0.0, 1.0}) {  // the second search uses data kept by the first
    const CoarseField field = search.run(correlator, moved(part * u, part * v, 2));
    EXPECT_GT(field.confidence, 0.5) << to_string(type);  // a third of the nodes leave the image
    EXPECT_NEAR(field.at(width / 2, height / 2).u, part * u, 1);
    EXPECT_NEAR(field.at(width / 2, height / 2).v, part * v, 1);
  }
}

TEST(CoarseSearch, FindsMotionsOfManyPixels) {
  for (const ScalarType type : {ScalarType::u8, ScalarType::u16, ScalarType::f32})
    expect_found(330, 241, type, 47.3, -31.6, {});
}

TEST(CoarseSearch, FindsThemUnderAMask) {
  Image roi({330, 241}, ScalarType::u8);
  for (int y = 0; y < 241; ++y)
    for (int x = 0; x < 330; ++x)
      roi.row<std::uint8_t>(y)[x] = std::hypot(x - 165, y - 120) < 100 && std::hypot(x - 190, y - 90) > 20;
  expect_found(330, 241, ScalarType::u8, 31.5, -20, roi);
}

}  // namespace
}  // namespace dic::track

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <dic/track.hpp>
#include <map>
#include <numbers>

#include "accuracy/accuracy_support.hpp"
#include "support/requirements.hpp"

// Synthetic images of known motion.
namespace dic {
namespace {

using namespace test;

SynthOptions synth_1024() {
  SynthOptions options;
  options.size = {1024, 1024};
  options.motion.cx = options.motion.cy = 511.5;
  return options;
}

class TranslationBias : public testing::TestWithParam<double> {};

TEST_P(TranslationBias, StaysBelowThatOfAPrefilteredSpline) {
  SynthOptions synth = synth_1024();
  synth.blob_sigma = GetParam();
  synth.motion.u = 1;
  for (int k = 1; k <= 20; ++k) synth.amounts.push_back(0.05 * k);
  synth.amounts.erase(synth.amounts.begin() + 1);
  TrackOptions cubic = track_options(33, 1, 10), quintic = cubic;
  quintic.refine.interpolation = Interpolation::quintic;
  const Image reference = synth_frame(synth, 0);
  Tracker with_cubic(cubic, reference), with_quintic(quintic, reference);
  const Scene scene{with_cubic.grid(), synth.size.width, synth.size.height};
  double bias_cubic = 0, bias_quintic = 0;
  for (int k = 1; k <= 20; ++k) {
    const Image current = synth_frame(synth, k);
    const double shift = synth.amounts[k];
    const Truth truth = [shift](double, double) { return Displacement{shift, 0}; };
    const Errors c = interior_errors(scene, with_cubic.track(current).field, truth);
    const Errors q = interior_errors(scene, with_quintic.track(current).field, truth);
    ASSERT_EQ(c.ok, c.points) << shift;
    ASSERT_EQ(q.ok, q.points) << shift;
    bias_cubic = std::max(bias_cubic, std::abs(c.u.mean()));
    bias_quintic = std::max(bias_quintic, std::abs(q.u.mean()));
  }
  const bool coarse = GetParam() > 1.5;
  EXPECT_LE(bias_cubic, coarse ? 6e-4 : 45e-4);
  EXPECT_LE(bias_quintic, coarse ? 1.5e-4 : 10e-4);
}
INSTANTIATE_TEST_SUITE_P(Blobs, TranslationBias, testing::Values(1.7, 1.0),
                         [](const auto& test) { return test.param > 1.5 ? "sigma17" : "sigma10"; });

TEST(Border, PointsWhoseSubsetIsCutAreMeasuredWithoutBias) {
  SynthOptions synth;
  synth.motion.u = 1;
  synth.amounts = {0, 0.25, 0.5};
  const Image reference = synth_frame(synth, 0);
  Tracker tracker(track_options(), reference);
  const Grid& grid = tracker.grid();
  const Scene scene{grid, synth.size.width, synth.size.height};
  const auto outermost = [&](int i, int j) {
    const int x = grid.x(i), y = grid.y(j);
    return std::min({x, y, synth.size.width - 1 - x, synth.size.height - 1 - y}) < 5;
  };
  for (int frame : {1, 2}) {
    const Field field = tracker.track(synth_frame(synth, frame)).field;
    Moments error;
    each_node(scene, outermost, [&](int, int, std::int64_t n) {
      if (field.status[n] == Status::ok) error.add(field.u[n] - synth.amounts[frame]);
    });
    // A spline that mirrors the image at its edges has -0.012 and 0.010 px at 0.25 px.
    EXPECT_GT(error.n, 250);
    EXPECT_NEAR(error.mean(), 0, 0.0025) << synth.amounts[frame];
    EXPECT_LE(error.sd(), 0.005) << synth.amounts[frame];
  }
}

TEST(Uncertainty, PredictsTheScatterOfNoiseWithin10Percent) {
  // Two draws: the points of one image overlap, so that a single draw leaves a few percent to chance.
  for (int order : {0, 1, 2})
    for (int subset : {15, 21, 33, 51}) {
      Moments ratio;
      for (std::uint64_t seed : {1, 2}) {
        static std::map<std::uint64_t, std::pair<Image, Image>> images;
        if (!images.contains(seed)) {
          SynthOptions synth = synth_1024();
          synth.noise = 2;
          synth.motion.u = 0.3;
          synth.motion.v = 0.2;
          synth.seed = seed;
          images.emplace(seed, std::pair(synth_frame(synth, 0), synth_frame(synth, 1)));
        }
        const auto& [reference, current] = images.at(seed);
        const Measured m = track_pair(track_options(subset, order, 12), reference, current);
        const Errors e = interior_errors(m.scene, m.field, [](double, double) {
          return Displacement{0.3, 0.2};
        });
        ASSERT_EQ(e.ok, e.points) << "subset " << subset << ", order " << order;
        ratio.n += e.ratio_u.n + e.ratio_v.n;
        ratio.square += e.ratio_u.square + e.ratio_v.square;
      }
      EXPECT_NEAR(ratio.rms(), 1, 0.1) << "subset " << subset << ", order " << order;
    }
}

/// Neighbouring subsets share pixels: their errors, and so those of strain, are correlated.
TEST(Uncertainty, PredictsTheScatterOfStrainWithin10Percent) {
  struct Case {
    int subset, order, step;
  };
  for (const Case& c : {Case{15, 0, 2}, {21, 1, 5}, {33, 2, 5}, {33, 1, 10}}) {
    std::map<int, Moments> observed, predicted;  // by window
    for (const std::uint64_t seed : {1, 2, 3}) {
      SynthOptions synth;
      synth.size = {c.step == 10 ? 1024 : 512, c.step == 10 ? 1024 : 512};
      synth.noise = 1;
      synth.seed = seed;
      synth.motion.u = 0.3, synth.motion.v = 0.2;
      Tracker tracker(track_options(c.subset, c.order, c.step), synth_frame(synth, 0));
      const Field field = tracker.track(synth_frame(synth, 1)).field;
      const Grid& grid = field.grid();
      for (const int window : {3, 7, 11}) {
        const StrainField strain = compute_strain(field, {window}, 0, MeasuredSubsets{c.subset, c.order});
        const int margin = c.subset / 2 / c.step + window / 2 + 1;  // nodes
        for (int j = margin; j < grid.ny - margin; ++j)
          for (int i = margin; i < grid.nx - margin; ++i) {
            const auto k = static_cast<std::size_t>(j) * grid.nx + i;
            for (const double e : {strain.exx[k], strain.eyy[k], strain.exy[k]}) observed[window].add(e);
            for (const double sigma : {strain.sigma_exx[k], strain.sigma_eyy[k], strain.sigma_exy[k]})
              predicted[window].add(sigma);
          }
      }
    }
    for (const auto& [window, errors] : observed)
      EXPECT_NEAR(predicted[window].rms() / errors.rms(), 1, 0.1)
          << "subset " << c.subset << " order " << c.order << " step " << c.step << " window " << window;
  }
}

TEST(Affine, StretchAndRotationAreMeasuredEverywhere) {
  SynthOptions synth = synth_1024();
  const double angle = std::numbers::pi / 180;
  Motion& m = synth.motion;
  m.kind = MotionKind::affine;
  m.ux = 1.02 * std::cos(angle) - 1;
  m.uy = -std::sin(angle);
  m.vx = 1.02 * std::sin(angle);
  m.vy = std::cos(angle) - 1;
  const Measured measured = track_pair(track_options(), synth_frame(synth, 0), synth_frame(synth, 1));
  const Errors e = interior_errors(measured.scene, measured.field, [&](double x, double y) {
    return Displacement{m.ux * (x - m.cx) + m.uy * (y - m.cy), m.vx * (x - m.cx) + m.vy * (y - m.cy)};
  });
  EXPECT_EQ(e.ok, e.points);
  EXPECT_GT(e.points, 35000);
  EXPECT_LE(e.u.sd(), 0.0018);
  EXPECT_LE(e.v.sd(), 0.0018);
  EXPECT_NEAR(e.u.mean(), 0, 2e-4);
  EXPECT_NEAR(e.v.mean(), 0, 2e-4);
  EXPECT_NEAR(e.exx.mean(), 0.0202, 2e-4);
  EXPECT_NEAR(e.eyy.mean(), 0, 2e-4);
  EXPECT_NEAR(e.exy.mean(), 0, 2e-4);
  EXPECT_LE(std::max({e.exx.sd(), e.eyy.sd(), e.exy.sd()}), 2e-4);
}

/// Points within `radius` px of the middle are all found, without a search range, and accurately.
void expect_found(const SynthOptions& synth, double radius, const Truth& truth) {
  const Measured m = track_pair(track_options(33, 1, 10), synth_frame(synth, 0), synth_frame(synth, 1));
  Moments u, v;
  std::int64_t lost = 0;
  each_node(
      m.scene,
      [&](int i, int j) { return std::hypot(m.scene.grid.x(i) - 511.5, m.scene.grid.y(j) - 511.5) < radius; },
      [&](int i, int j, std::int64_t n) {
        lost += m.field.status[n] != Status::ok;
        if (m.field.status[n] != Status::ok) return;
        const auto [du, dv] = truth(m.scene.grid.x(i), m.scene.grid.y(j));
        u.add(m.field.u[n] - du);
        v.add(m.field.v[n] - dv);
      });
  EXPECT_EQ(lost, 0);
  EXPECT_GT(u.n, 500);
  EXPECT_LE(u.rms(), 0.01);
  EXPECT_LE(v.rms(), 0.01);
}

TEST(LargeMotions, TranslationsByHundredsOfPixelsAreFound) {
  SynthOptions synth = synth_1024();
  synth.noise = 2;
  synth.motion.u = 300.37;
  synth.motion.v = -150.2;
  expect_found(synth, 180, [](double, double) { return Displacement{300.37, -150.2}; });
}

TEST(LargeMotions, RotationsBy20DegreesInOneStepAreFound) {
  SynthOptions synth = synth_1024();
  synth.noise = 2;
  synth.motion.kind = MotionKind::rotation;
  synth.motion.angle_deg = 20;
  const double angle = 20 * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  expect_found(synth, 400, [=](double x, double y) {
    x -= 511.5;
    y -= 511.5;
    return Displacement{cosine * x - sine * y - x, sine * x + cosine * y - y};
  });
}

/// Mean over the measured points of the last of three frames, which moves where the second did not.
double iterations_after_a_step(std::optional<int> search) {
  SynthOptions synth = synth_1024();
  synth.noise = 2;
  synth.motion.u = 2.3;
  synth.motion.v = -1.7;
  synth.amounts = {0, 0, 1};
  TrackOptions options = track_options(33, 1, 20);
  options.search = search;
  Tracker tracker(options, synth_frame(synth, 0));
  tracker.track(synth_frame(synth, 1));
  const Field field = tracker.track(synth_frame(synth, 2)).field;
  Moments iterations;
  for (std::size_t k = 0; k < field.status.size(); ++k)
    if (field.status[k] == Status::ok) iterations.add(field.iterations[k]);
  EXPECT_GT(iterations.n, 2000);
  return iterations.mean();
}

/// The peak lies on the border of the automatic range, and has its neighbours only in the next window.
TEST(LargeMotions, FollowedPeaksAreAsGoodStartsAsThoseOfAWideSearch) {
  EXPECT_NEAR(iterations_after_a_step(std::nullopt), iterations_after_a_step(6), 0.05);
}

}  // namespace
}  // namespace dic

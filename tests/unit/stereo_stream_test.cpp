#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <dic/error.hpp>
#include <dic/stereo_stream.hpp>
#include <dic/synth_stereo.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dic {
namespace {

constexpr Size kImage{160, 120};
constexpr int kStates = 5;

/// A flat specimen in front of two cameras that moves towards them and is stretched, further in each state.
StereoSynthOptions specimen() {
  StereoSynthOptions options;
  options.image.size = kImage;
  options.image.blob_sigma = 2;
  options.rig = convergent_rig(kImage, 2.5 * kImage.width, 500, 25);
  options.pose = facing_middle(options.rig, 500);
  options.motion.translation_mm = {1, -0.5, -2};
  options.motion.ux = 0.01;
  options.image.amounts.clear();
  for (int state = 0; state < kStates; ++state) options.image.amounts.push_back(0.25 * state);
  return options;
}

struct Pair {
  Image left, right;
};

class StereoStreams : public testing::Test {
 protected:
  StereoStreams() {
    options_.track.refine.subset = 21;
    options_.track.step = 16;
    options_.track.device = "cpu";
    options_.track.threads = 1;
  }

  static const StereoScene& scene() {
    static const StereoScene made(specimen());
    return made;
  }
  static const Pair& pair(int state) {
    static const std::vector<Pair> pairs = [] {
      std::vector<Pair> all;
      for (int k = 0; k < kStates; ++k) all.push_back({scene().frame(0, k), scene().frame(1, k)});
      return all;
    }();
    return pairs.at(static_cast<std::size_t>(state));
  }
  std::unique_ptr<StereoStream> open(StereoStream::Callback callback = {}, int capacity = 4) const {
    return std::make_unique<StereoStream>(options_, specimen().rig, pair(0).left, pair(0).right, Roi{},
                                          std::move(callback), capacity);
  }
  static std::int64_t push(StereoStream& stream, int state) {
    return stream.push(pair(state).left, pair(state).right);
  }

  /// All measured points have the motion in space between the states.
  static void expect_motion(const StereoFrame& frame, int from, int to) {
    ASSERT_EQ(frame.error, "");
    const Field& field = frame.field;
    std::int64_t ok = 0;
    for (int j = 0; j < field.grid().ny; ++j)
      for (int i = 0; i < field.grid().nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * field.grid().nx + i;
        if (field.status[k] != Status::ok) continue;
        ++ok;
        // The specimen is flat and moves evenly, so that the motion between two states is the difference of
        // their motions since the first one, but for 0.02 mm by which the point under the node has moved.
        const double x = field.grid().x(i), y = field.grid().y(j);
        const StereoTruth before = scene().truth(from, x, y), after = scene().truth(to, x, y);
        const std::array moved = {field.stereo.u[k], field.stereo.v[k], field.stereo.w[k]};
        const std::array sigma = {field.stereo.sigma_u[k], field.stereo.sigma_v[k], field.stereo.sigma_w[k]};
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_NEAR(moved[c], after.displacement_mm[c] - before.displacement_mm[c], 5 * sigma[c] + 0.04)
              << c << " at " << x << "," << y;
      }
    EXPECT_GT(ok, 20);
  }

  StereoOptions options_;
};

TEST_F(StereoStreams, MeasuresTheMotionAndWhatTheTrackerMeasures) {
  const auto stream = open();
  StereoTracker tracker(options_, specimen().rig, pair(0).left, pair(0).right);
  EXPECT_EQ(stream->grid().nodes(), tracker.grid().nodes());
  const StereoFrame reference = stream->reference();
  for (std::size_t k = 0; k < reference.field.status.size(); ++k) {
    if (!has_values(reference.field.status[k])) continue;
    EXPECT_EQ(reference.field.stereo.z[k], tracker.reference().field.stereo.z[k]);
  }
  for (int state = 1; state < kStates; ++state) EXPECT_EQ(push(*stream, state), state - 1);
  for (int state = 1; state < kStates; ++state) {
    const auto frame = stream->wait();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->index, state - 1);
    EXPECT_GT(frame->latency, 0);
    expect_motion(*frame, 0, state);
    const Field expected = tracker.track(pair(state).left, pair(state).right).field;
    for (std::size_t k = 0; k < expected.status.size(); ++k) {
      ASSERT_EQ(frame->field.status[k], expected.status[k]);
      if (!has_values(expected.status[k])) continue;
      EXPECT_EQ(frame->field.stereo.w[k], expected.stereo.w[k]);
      EXPECT_EQ(frame->field.stereo.sigma_w[k], expected.stereo.sigma_w[k]);
    }
  }
  EXPECT_FALSE(stream->wait());
  EXPECT_FALSE(stream->poll());
  EXPECT_FALSE(stream->kernels().empty());
  EXPECT_EQ(stream->options().refine.subset, 21);
}

TEST_F(StereoStreams, PixelsMayChangeAfterThePush) {
  const auto stream = open();
  Pair changing = {copy_of(pair(2).left.view()), copy_of(pair(2).right.view())};
  stream->push(changing.left, changing.right);
  for (Image* image : {&changing.left, &changing.right})
    std::fill_n(image->row<std::uint8_t>(0), image->width() * image->height() / 2, std::uint8_t{7});
  expect_motion(*stream->wait(), 0, 2);
}

TEST_F(StereoStreams, TheCallbackGetsAllResultsInOrder) {
  std::vector<std::int64_t> indices;
  std::vector<StereoFrame> frames;
  const auto stream = open([&](StereoFrame frame) {
    indices.push_back(frame.index);
    frames.push_back(std::move(frame));
  });
  for (int state = 1; state < kStates; ++state) push(*stream, state);
  stream->finish();
  EXPECT_EQ(indices, (std::vector<std::int64_t>{0, 1, 2, 3}));
  for (int state = 1; state < kStates; ++state)
    expect_motion(frames.at(static_cast<std::size_t>(state) - 1), 0, state);
  EXPECT_FALSE(stream->poll());
  EXPECT_FALSE(stream->wait());
}

TEST_F(StereoStreams, AtMostItsCapacityIsInside) {
  const auto stream = open({}, 2);
  push(*stream, 1), push(*stream, 2);
  stream->finish();  // measured, but not taken
  EXPECT_FALSE(stream->try_push(pair(3).left, pair(3).right));
  EXPECT_EQ(stream->poll()->index, 0);
  EXPECT_EQ(stream->try_push(pair(3).left, pair(3).right), 2);
  EXPECT_EQ(stream->wait()->index, 1);
  expect_motion(*stream->wait(), 0, 3);
  EXPECT_THROW(open({}, 0), UsageError);
}

TEST_F(StereoStreams, APairThatDoesNotFitConcernsNoOther) {
  const auto stream = open();
  const Image small({80, 60}, ScalarType::u8);
  stream->push(small, small);
  stream->push(pair(1).left, small);
  push(*stream, 1);
  for (int k = 0; k < 2; ++k) EXPECT_NE(stream->wait()->error.find("size"), std::string::npos);
  expect_motion(*stream->wait(), 0, 1);
  ImageView overlapping = pair(1).left.view();
  overlapping.row_bytes = 10;  // less than a row
  EXPECT_THROW(stream->push(overlapping, pair(1).right), UsageError);
  EXPECT_EQ(push(*stream, 2), 3);
  EXPECT_EQ(stream->wait()->index, 3);
}

TEST_F(StereoStreams, GoesOnAfterCancel) {
  const auto stream = open();
  for (int state = 1; state < kStates; ++state) push(*stream, state);
  stream->cancel();
  std::int64_t last = -1;
  while (const auto frame = stream->wait()) last = frame->index;  // what was measured before
  EXPECT_LT(last, 4);
  EXPECT_EQ(push(*stream, 2), 4);
  const auto frame = stream->wait();
  EXPECT_EQ(frame->index, 4);
  expect_motion(*frame, 0, 2);
}

TEST_F(StereoStreams, ResetTakesOtherReferences) {
  const auto stream = open();
  push(*stream, 4);
  stream->reset(pair(1).left, pair(1).right);
  EXPECT_EQ(push(*stream, 3), 0);
  expect_motion(*stream->wait(), 1, 3);
  const Image small({80, 60}, ScalarType::u8);
  EXPECT_THROW(stream->reset(small, small), UsageError);
  EXPECT_THROW(push(*stream, 1), UsageError);
  EXPECT_THROW(stream->grid(), UsageError);
  stream->reset(pair(0).left, pair(0).right);
  push(*stream, 1);
  expect_motion(*stream->wait(), 0, 1);
}

TEST_F(StereoStreams, AnExceptionOfTheCallbackEndsTheExperiment) {
  const auto stream = open([](const StereoFrame&) { throw std::runtime_error("full"); });
  push(*stream, 1);
  EXPECT_THROW(stream->finish(), std::runtime_error);
  EXPECT_THROW(push(*stream, 2), std::runtime_error);
  stream->reset(pair(0).left, pair(0).right);
  EXPECT_NO_THROW(push(*stream, 1));
}

TEST_F(StereoStreams, ManyThreadsMayPush) {
  std::atomic<int> results = 0;
  const auto stream = open([&](const StereoFrame& frame) { results += frame.error.empty() ? 1 : 0; }, 2);
  {
    std::vector<std::jthread> threads;
    for (int k = 1; k <= 3; ++k) threads.emplace_back([&, k] { push(*stream, k), push(*stream, k); });
  }
  stream->finish();
  EXPECT_EQ(results, 6);
}

}  // namespace
}  // namespace dic

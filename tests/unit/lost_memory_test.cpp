#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "support/speckle.hpp"
#include "track/algorithm/start_search.hpp"
#include "track/sequence.hpp"

// Tests of the memory that a reference keeps of points that the image pyramid did not find.
namespace dic::track {
namespace {

/// A search of a frame in which given numbers of points are lost. Counts how often it used the pyramid.
template <bool kGpu>
struct FakeSearch {
  static constexpr bool kSpeculative = kGpu;

  std::int64_t all = 1000, without_prediction = 0, not_found = 0;
  bool is_first = false;
  bool waves_reach_all = false;  ///< the waves measure all points that were not found
  int predicted = 0, searched_again = 0;

  bool automatic() const { return true; }
  bool has_last() const { return !is_first; }
  void predict_from_last() {}
  void follow_common_motion() {}
  void predict_from_pyramid() { ++predicted; }
  void search_all() {}
  void search_again(bool) { ++searched_again; }
  void leave_out_measured() {
    if (waves_reach_all) not_found = 0;
  }
  std::int64_t trackable() const { return all; }
  std::int64_t unpredicted() const { return is_first ? all : without_prediction; }
  std::int64_t lost() const { return not_found; }
};

struct Tries {
  bool by_pyramid, again;
  bool operator==(const Tries&) const = default;
};

/// Searches one frame; the memory is that of the frames before.
template <bool kGpu>
Tries tries(LostMemory& memory, std::int64_t without_prediction, std::int64_t not_found,
            bool is_first = false, bool waves_reach_all = false) {
  FakeSearch<kGpu> search{.without_prediction = without_prediction,
                          .not_found = not_found,
                          .is_first = is_first,
                          .waves_reach_all = waves_reach_all};
  int improved = 0;
  begin_start_search(search, memory);
  NotFound outcome = finish_start_search(search, memory, [&] { ++improved; });
  EXPECT_EQ(improved, search.searched_again > 0 || (kGpu && !is_first && search.predicted > 0) ? 1 : 0);
  if (outcome.left_to_waves) {
    EXPECT_EQ(search.searched_again, 0);
    EXPECT_LE(not_found, 200) << "more than waves are trusted to reach";
    search.leave_out_measured();
    const bool again = search_for_rest(search, memory, outcome);
    EXPECT_EQ(again, search.searched_again > 0);
    EXPECT_FALSE(outcome.left_to_waves);
  }
  EXPECT_EQ(outcome.many, search.not_found > 20);
  return {search.predicted > 0, search.searched_again > 0};
}

template <bool kGpu>
void expect_tries() {
  LostMemory memory;
  const Tries none{false, false}, both{true, true};
  EXPECT_EQ(tries<kGpu>(memory, 0, 100, true), (Tries{true, false})) << "the first frame";
  EXPECT_EQ(tries<kGpu>(memory, 150, 100), both) << "the first frame tells little about the second";
  for (int frame = 0; frame < kFramesBetweenTries; ++frame) {
    EXPECT_EQ(tries<kGpu>(memory, 150, 100), none) << frame;
    EXPECT_EQ(memory.is_due, frame == kFramesBetweenTries - 1);
  }
  EXPECT_EQ(tries<kGpu>(memory, 150, 100), both) << "everything is tried again";
  EXPECT_EQ(tries<kGpu>(memory, 150, 100), none);
  EXPECT_EQ(tries<kGpu>(memory, 155, 121), (Tries{false, true})) << "more than 2 % are newly not found";
  EXPECT_EQ(tries<kGpu>(memory, 171, 121), (Tries{true, false})) << "or have no prediction";
  EXPECT_EQ(tries<kGpu>(memory, 30, 30), none) << "few are lost now";
  EXPECT_EQ(tries<kGpu>(memory, 60, 60), both) << "of them, many got lost again";
  EXPECT_EQ(tries<kGpu>(memory, 501, 501), both);
  EXPECT_EQ(tries<kGpu>(memory, 501, 501), both) << "most are lost: the motion may have been large";
  EXPECT_EQ(tries<kGpu>(memory, 10, 10), none);
  EXPECT_EQ(memory.unpredicted + memory.not_found, 20);
}

TEST(LostMemory, PointsThatThePyramidMissedAreNotLookedForInEachFrame) {
  expect_tries<false>();
  expect_tries<true>();
}

TEST(LostMemory, FramesWithoutLostPointsNeverUseThePyramid) {
  LostMemory memory;
  tries<true>(memory, 0, 0, true);
  for (int frame = 0; frame < 3 * kFramesBetweenTries; ++frame) {
    EXPECT_EQ(tries<true>(memory, 15, 15), (Tries{false, false}));
    EXPECT_EQ(memory.is_due, 0);
  }
}

TEST(LostMemory, PointsThatWavesReachAreNotLookedForByThePyramid) {
  LostMemory memory;
  tries<true>(memory, 0, 0, true);
  for (int frame = 0; frame < 3 * kFramesBetweenTries; ++frame) {
    EXPECT_EQ(tries<true>(memory, 0, 100, false, true), (Tries{false, false})) << frame;
    EXPECT_EQ(memory.not_found, 0);
  }
  EXPECT_EQ(tries<true>(memory, 0, 100), (Tries{false, true})) << "until waves do not reach them";
  EXPECT_EQ(tries<true>(memory, 0, 201, false, true), (Tries{false, true})) << "too many for waves";
}

constexpr int kWidth = 360, kHeight = 72, kGap = 100;

/// Two plates of speckle with plain grey between them. The right one is hidden by another texture on
/// request, and both move by (shift, 0) px.
Image plates(double shift, bool hides_right) {
  static const test::Speckle speckle(3 * kWidth, kHeight, 2, 1, 900), other(kWidth, kHeight, 2, 5, 300);
  const auto grey = [&](int x, int y) {
    const double at = x - shift;
    const int middle = kWidth / 2;
    if (std::abs(at - middle) < kGap / 2.0) return 120.0;
    return hides_right && at > middle ? test::grey_of(other(x, y)) : test::grey_of(speckle(at + kWidth, y));
  };
  return test::converted<std::uint8_t>(test::image_of(kWidth, kHeight, grey), ScalarType::u8);
}

/// Numbers of points measured on the left and on the right plate.
std::pair<int, int> measured(const Field& field, double shift) {
  std::pair<int, int> counts;
  for (std::int64_t k = 0; k < field.grid().nodes(); ++k) {
    if (field.status[k] != Status::ok) continue;
    const int x = field.grid().x(static_cast<int>(k % field.grid().nx));
    EXPECT_NEAR(field.u[k], shift, 0.1);
    ++(x < kWidth / 2 ? counts.first : counts.second);
  }
  return counts;
}

TrackOptions cpu_options() {
  TrackOptions options;
  options.refine.subset = 21;
  options.step = 8;
  options.threads = 1;
  options.device = "cpu";
  return options;
}

TEST(LostMemory, APlateThatComesBackIsFoundAgain) {
  const TrackOptions options = cpu_options();
  Sequence sequence(options, plates(0, false).view(), {});
  const auto next = [&](double shift, bool hides_right) {
    const Image image = plates(shift, hides_right);
    return measured(sequence.measure(sequence.take(image.view()), {})->fetch().field, shift);
  };
  const auto [left, right] = next(1, false);
  EXPECT_GT(right, 50);
  for (int frame = 0; frame < 5; ++frame) {
    const auto [left_now, right_now] = next(2 + frame, true);
    EXPECT_GE(left_now, left - 10) << frame;
    EXPECT_LE(right_now, right / 10);
  }
  int frames = 0, found = 0;
  for (; frames <= kFramesBetweenTries && found < right - 10; ++frames)
    found = next(9 + frames, false).second;
  EXPECT_GE(found, right - 10) << "within " << frames << " frames";
}

/// The plates moved by (shift, 0) px, with noise of `sd` grey levels. The right one is smaller and has a
/// fifth of the contrast.
Image weak_plate(double shift, double sd, unsigned seed) {
  static const test::Speckle speckle(3 * kWidth, kHeight, 2, 1, 900);
  const auto grey = [&](int x, int y) {
    const double at = x - shift, value = test::grey_of(speckle(at + kWidth, y));
    if (at < 0.4 * kWidth) return value;
    return at < 0.7 * kWidth ? 120.0 : 130 + (value - 130) / 5;
  };
  return test::converted<std::uint8_t>(test::noisy(test::image_of(kWidth, kHeight, grey), sd, seed),
                                       ScalarType::u8);
}

TEST(LostMemory, APlateThatWasMereNoiseIsFoundAgain) {
  const TrackOptions options = cpu_options();
  Sequence sequence(options, weak_plate(0, 1, 1).view(), {});
  const auto next = [&](double shift, double sd) {
    const Image image = weak_plate(shift, sd, static_cast<unsigned>(10 + shift));
    return sequence.measure(sequence.take(image.view()), {})->fetch().field;
  };
  const auto right = [](const Field& field, Status status) {
    int points = 0;
    for (std::int64_t k = 0; k < field.grid().nodes(); ++k)
      points +=
          field.status[k] == status && field.grid().x(static_cast<int>(k % field.grid().nx)) > 0.7 * kWidth;
    return points;
  };
  const Field quiet = next(1, 1);
  const int all = right(quiet, Status::ok);
  EXPECT_GT(all, 50);
  double shift = 1;
  for (int frame = 0; frame < 5; ++frame) {
    const Field noisy = next(shift += 6, 10);
    EXPECT_GT(right(noisy, Status::flat), all / 2) << frame;
    EXPECT_LT(right(noisy, Status::ok), all / 10) << frame;
  }
  int frames = 0, found = 0;
  for (; frames < 2 && found < 0.6 * all; ++frames) {  // the rest has left the image
    const Field field = next(shift += 2, 1);
    found = right(field, Status::ok);
    for (std::int64_t k = 0; k < field.grid().nodes(); ++k)
      if (field.status[k] == Status::ok) {
        EXPECT_NEAR(field.u[k], shift, 0.2);
      }
  }
  EXPECT_GE(found, 0.6 * all) << "within " << frames << " frames";
}

TEST(LostMemory, PointsThatLeftTheImageAreNotMissedUnlessMostDid) {
  EXPECT_EQ(missed(50, 40, 300, 1000), 10);
  EXPECT_EQ(missed(50, 40, 500, 1000), 10);
  EXPECT_EQ(missed(50, 40, 501, 1000), 50);
}

constexpr Size kView{160, 120};
constexpr int kRadius = 10;

/// Speckle that has moved by (shift, 0) px.
Image moved_by(double shift) {
  static const test::Speckle speckle(3 * kView.width, kView.height, 2, 3, 1800);
  const auto grey = [&](int x, int y) { return test::grey_of(speckle(x - shift + kView.width, y)); };
  return test::converted<std::uint8_t>(test::image_of(kView.width, kView.height, grey), ScalarType::u8);
}

/// Points far outside of the image, and the iterations spent on them.
struct Outside {
  int points = 0, iterations = 0;
};

/// Expects that all points whose subsets are in the image are measured, and that those far outside have left
/// it, and counts the latter. Leaves out the rows at the top and at the bottom, whose corners are too small
/// to be measured.
void expect_moved(const Field& field, double shift, Outside& counts) {
  SCOPED_TRACE(shift);
  const Grid& grid = field.grid();
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    const int x = grid.x(static_cast<int>(k % grid.nx)), y = grid.y(static_cast<int>(k / grid.nx));
    if (y < kRadius || y + kRadius >= kView.height) continue;
    const double first = std::max(x - kRadius, 0) + shift;
    const double last = std::min(x + kRadius, kView.width - 1) + shift;
    const double outside = std::max(-first, last - (kView.width - 1));
    SCOPED_TRACE(testing::Message() << x << ", " << y);
    if (outside <= 0) {
      EXPECT_EQ(field.status[k], Status::ok);
    }
    if (has_values(field.status[k])) {
      EXPECT_NEAR(field.u[k], shift, 0.1);
    }
    if (outside <= kRadius + 3) continue;  // half of the subset is measured
    EXPECT_EQ(field.status[k], Status::out_of_image);
    ++counts.points;
    counts.iterations += field.iterations[k];
  }
}

TEST(LostMemory, PointsAtTheBorderLeaveAndComeBack) {
  Sequence sequence(cpu_options(), moved_by(0).view(), {});
  const auto measure = [&](double shift, Outside& counts) {
    const Image image = moved_by(shift);
    expect_moved(sequence.measure(sequence.take(image.view()), {})->fetch().field, shift, counts);
  };
  Outside slowly, leaping;
  for (const double shift :
       {2.6, 5.1, 7.9,  10.4, 13.2, 16.0, 18.5,  21.1,  24.0,  20.9,  18.2,  15.0, 12.4, 9.7,  7.0,
        4.2, 1.5, -1.1, -4.0, -6.8, -9.3, -12.0, -14.6, -17.0, -14.0, -11.0, -8.1, -5.0, -2.2, 0.4})
    measure(shift, slowly);
  EXPECT_GT(slowly.points, 100);
  EXPECT_LT(slowly.iterations, slowly.points) << "chance matches are not refined";
  for (const double shift : {30.0, 0.7}) measure(shift, leaping);
}

TEST(LostMemory, ADamagedStateIsRefused) {
  TrackOptions options = cpu_options();
  options.keep_state = true;
  Sequence sequence(options, plates(0, false).view(), {});
  const Image image = plates(1, false);
  const std::vector<std::byte> state = sequence.measure(sequence.take(image.view()), {})->fetch().state;
  ASSERT_GT(state.size(), sizeof(LostMemory));
  EXPECT_TRUE(sequence.restore(state, {}));
  for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{1} << 40, -(std::int64_t{1} << 60)})
    for (std::size_t k = 0; k < sizeof(LostMemory) / sizeof value; ++k) {
      std::vector<std::byte> damaged = state;
      std::memcpy(damaged.data() + k * sizeof value, &value, sizeof value);
      EXPECT_FALSE(sequence.restore(damaged, {})) << "number " << k << " is " << value;
    }
}

TEST(StateOfStrategies, ADamagedHeadIsRefused) {
  using enum ReferenceStrategy;
  for (const ReferenceStrategy strategy : {previous, automatic}) {
    TrackOptions options = cpu_options();
    options.keep_state = true;
    options.reference_strategy = strategy;
    Sequence sequence(options, plates(0, false).view(), {});
    const Image image = plates(1, false);
    const std::vector<std::byte> state = sequence.measure(sequence.take(image.view()), {})->fetch().state;
    const auto read = [&](std::int64_t frame) {
      EXPECT_EQ(frame, 0) << "the only frame";
      return image;
    };
    EXPECT_TRUE(sequence.restore(state, read));
    constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
    constexpr std::size_t kNumbers = 7;
    for (const std::int64_t value : {std::int64_t{-2}, std::int64_t{1} << 40, kLargest, -kLargest})
      for (std::size_t k = 0; k < kNumbers; ++k) {
        std::vector<std::byte> damaged = state;
        std::memcpy(damaged.data() + k * sizeof value, &value, sizeof value);
        EXPECT_FALSE(sequence.restore(damaged, read)) << "number " << k << " is " << value;
      }
    for (const std::size_t bytes : {std::size_t{0}, sizeof(std::int64_t), kNumbers * sizeof(std::int64_t)})
      EXPECT_FALSE(sequence.restore(std::span(state).first(bytes), read)) << bytes;
    const std::vector<std::byte> random(state.size(), std::byte{0x5a});
    EXPECT_FALSE(sequence.restore(random, read));
  }
}

}  // namespace
}  // namespace dic::track

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/track_stream.hpp>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/speckle.hpp"

// Tests streams of frames: order, back-pressure, errors, cancelling, reuse for another experiment.
namespace dic {
namespace {

constexpr int kSize = 96;

TrackOptions options_of(int step = 16) {
  TrackOptions options;
  options.refine.subset = 21;
  options.step = step;
  options.search = 3;
  options.threads = 1;
  options.device = "cpu";
  return options;
}

/// Speckle shifted by (shift, 0) px.
Image frame(double shift, int size = kSize, unsigned seed = 1) {
  const test::Speckle speckle(size, size, 2, seed, 40);
  return test::converted<std::uint8_t>(
      test::image_of(size, size, [&](int x, int y) { return test::grey_of(speckle(x - shift, y)); }),
      ScalarType::u8);
}

/// Displacement of frame k, px.
double shift_of(std::int64_t k) { return 0.2 * static_cast<double>(k % 10); }
std::vector<Image> frames(int count) {
  std::vector<Image> out;
  for (int k = 0; k < count; ++k) out.push_back(frame(shift_of(k)));
  return out;
}

double mean_u(const Field& field) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < field.u.size(); ++i)
    if (field.status[i] == Status::ok) {
      sum += field.u[i];
      ++count;
    }
  return count > 0 ? sum / count : NAN;
}

void expect_frame(const FrameResult& result, std::int64_t index) {
  EXPECT_EQ(result.index, index);
  EXPECT_EQ(result.error, "");
  EXPECT_NEAR(mean_u(result.field), shift_of(index), 0.02) << "frame " << index;
}

TEST(TrackStream, HandsOutResultsInOrder) {
  const std::vector<Image> images = frames(9);
  std::vector<FrameResult> results;
  std::set<std::thread::id> threads;
  std::atomic<int> at_once = 0;
  TrackStream stream(options_of(), images[0], {}, [&](FrameResult result) {
    EXPECT_EQ(++at_once, 1);
    threads.insert(std::this_thread::get_id());
    results.push_back(std::move(result));
    --at_once;
  });
  for (const Image& image : images) stream.push(image);
  stream.finish();
  ASSERT_EQ(results.size(), images.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    expect_frame(results[k], static_cast<std::int64_t>(k));
    EXPECT_GT(results[k].latency, 0);
    EXPECT_GT(results[k].seconds.measuring(), 0);
  }
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(TrackStream, MeasuresWhatATrackerMeasures) {
  const std::vector<Image> images = frames(4);
  TrackOptions options = options_of();
  options.reference_strategy = ReferenceStrategy::previous;
  Tracker tracker(options, images[0]);
  TrackStream stream(options, images[0]);
  for (const Image& image : images) stream.push(image);
  for (const Image& image : images) {
    const FrameResult expected = tracker.track(image);
    const auto result = stream.wait();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->index, expected.index);
    EXPECT_EQ(result->field.grid(), expected.field.grid());
    EXPECT_GT(expected.latency, 0);
    EXPECT_GT(expected.seconds.measuring(), 0);
    EXPECT_EQ(result->field.status, expected.field.status);
    EXPECT_EQ(result->noise, expected.noise);
    for (std::size_t i = 0; i < expected.field.u.size(); ++i)
      if (expected.field.status[i] == Status::ok) {
        ASSERT_EQ(result->field.u[i], expected.field.u[i]);
      }
  }
  EXPECT_FALSE(stream.wait());
}

TEST(TrackStream, MeasuresMoreFramesThanWereExpected) {
  const std::vector<Image> images = frames(5);
  TrackOptions options = options_of();
  options.search.reset();
  options.expected_frames = 2;
  TrackStream stream(options, images[0]);
  for (int k = 0; k < 5; ++k) {
    stream.push(images[k]);
    const std::optional<FrameResult> result = stream.wait();
    ASSERT_TRUE(result);
    expect_frame(*result, k);
  }
}

TEST(TrackStream, TakesThePixelsAtOnce) {
  const Image reference = frame(0);
  Image buffer = frame(1);
  TrackStream stream(options_of(), reference);
  stream.push(buffer);
  buffer = frame(2);
  stream.push(buffer);
  buffer = Image({kSize, kSize}, ScalarType::u8);
  EXPECT_NEAR(mean_u(stream.wait()->field), 1, 0.02);
  EXPECT_NEAR(mean_u(stream.wait()->field), 2, 0.02);
}

TEST(TrackStream, TryPushNeverWaitsForAPushThatWaits) {
  const Image image = frame(0);
  TrackStream stream(options_of(), image, {}, {}, 1);
  stream.push(image);
  std::thread producer([&] { stream.push(image); });  // push waits until the first result is taken
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(stream.try_push(image), std::nullopt);
  EXPECT_EQ(stream.wait()->index, 0);
  producer.join();
  EXPECT_EQ(stream.wait()->index, 1);
}

TEST(TrackStream, RefusesPixelsThatCannotBeRead) {
  const Image image = frame(0);
  TrackStream stream(options_of(), image);
  ImageView none = image, overlapping = image;
  none.data = nullptr;
  overlapping.row_bytes = kSize / 2;
  for (const ImageView& view : {none, overlapping}) {
    EXPECT_THROW(stream.push(view), UsageError);
    EXPECT_THROW(stream.try_push(view), UsageError);
    EXPECT_THROW(TrackStream(options_of(), view), UsageError);
  }
  stream.push(image);
  EXPECT_EQ(stream.wait()->index, 0);
}

TEST(TrackStream, HoldsNoMoreThanItsCapacity) {
  const Image image = frame(0);
  TrackStream stream(options_of(), image, {}, {}, 3);
  EXPECT_EQ(stream.try_push(image), 0);
  EXPECT_EQ(stream.try_push(image), 1);
  EXPECT_EQ(stream.try_push(image), 2);
  stream.finish();
  EXPECT_EQ(stream.try_push(image), std::nullopt) << "three results wait";
  EXPECT_EQ(stream.poll()->index, 0);
  EXPECT_EQ(stream.try_push(image), 3);
  std::atomic<bool> pushed = false;
  std::thread producer([&] {
    stream.push(image);
    pushed = true;
  });
  stream.finish();
  EXPECT_FALSE(pushed) << "push did not wait for room";
  EXPECT_EQ(stream.wait()->index, 1);
  producer.join();
  for (std::int64_t index : {2, 3, 4}) EXPECT_EQ(stream.wait()->index, index);
  EXPECT_EQ(stream.wait(), std::nullopt);
  EXPECT_EQ(stream.poll(), std::nullopt);
}

TEST(TrackStream, GoesOnAfterAFrameThatCannotBeMeasured) {
  const Image reference = frame(0);
  TrackStream stream(options_of(), reference);
  stream.push(frame(shift_of(0)));
  stream.push(frame(0, kSize + 1));
  stream.push(test::converted<std::uint16_t>(test::image_of(kSize, kSize, [](int, int) { return 7; }),
                                             ScalarType::u16));
  stream.push(frame(shift_of(3)));
  expect_frame(*stream.wait(), 0);
  for (std::int64_t index : {1, 2}) {
    const auto refused = stream.wait();
    EXPECT_EQ(refused->index, index);
    EXPECT_NE(refused->error.find("size"), std::string::npos) << refused->error;
    EXPECT_TRUE(refused->field.u.empty());
  }
  expect_frame(*stream.wait(), 3);
}

TEST(TrackStream, CancelForgetsWhatIsNotMeasured) {
  // The images have enough points for a frame to take a while.
  const Image reference = frame(0, 400), moved = frame(1, 400);
  TrackStream stream(options_of(2), reference, {}, {}, 50);
  for (int k = 0; k < 50; ++k) stream.push(moved);
  auto first = stream.wait();
  ASSERT_TRUE(first);
  stream.cancel();
  std::int64_t last = first->index;
  while (const auto result = stream.wait()) {
    EXPECT_EQ(result->index, last + 1);
    last = result->index;
  }
  EXPECT_LT(last, 40);
  // The stream goes on, with the same reference.
  EXPECT_EQ(stream.push(moved), 50);
  const auto next = stream.wait();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->index, 50);
  EXPECT_NEAR(mean_u(next->field), 1, 0.02);
}

TEST(TrackStream, EndsWhileFramesAreInside) {
  const Image reference = frame(0, 400);
  const auto begin = std::chrono::steady_clock::now();
  {
    TrackStream stream(options_of(2), reference, {}, {}, 100);
    for (int k = 0; k < 100; ++k) stream.push(reference);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(TrackStream, BeginsAnewWithAnotherReference) {
  std::vector<FrameResult> results;
  TrackStream stream(options_of(), frame(0), {}, [&](FrameResult r) { results.push_back(std::move(r)); });
  stream.push(frame(1));
  stream.finish();
  const int size = kSize + 40;
  stream.reset(frame(0, size, 5));
  EXPECT_GT(stream.grid().points(), static_cast<std::int64_t>(results.at(0).field.u.size()));
  stream.push(frame(2, size, 5));
  stream.finish();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].index, 0);
  EXPECT_NEAR(mean_u(results[1].field), 2, 0.02);
}

TEST(TrackStream, IsUsableAfterAResetThatFailed) {
  const Image image = frame(0);
  TrackStream stream(options_of(), image);
  stream.push(image);
  EXPECT_THROW(stream.reset(Image()), UsageError);
  EXPECT_THROW(stream.push(image), UsageError);
  EXPECT_EQ(stream.wait(), std::nullopt);
  stream.reset(image);
  EXPECT_EQ(stream.push(image), 0);
  expect_frame(*stream.wait(), 0);
}

TEST(TrackStream, WhatTheCallbackThrowsEndsTheExperiment) {
  const Image image = frame(0);
  int calls = 0;
  TrackStream stream(options_of(), image, {}, [&](const FrameResult&) {
    if (++calls == 2) throw FileError("The disk is full.");
  });
  stream.push(image);
  stream.finish();
  stream.push(image);
  EXPECT_THROW(stream.finish(), FileError);
  EXPECT_THROW(stream.push(image), FileError);
  EXPECT_THROW(stream.try_push(image), FileError);
  stream.reset(image);
  stream.push(image);
  stream.finish();
  EXPECT_EQ(calls, 3);
}

TEST(TrackStream, MayBeCancelledFromTheCallback) {
  const Image image = frame(0, 200);
  std::atomic<int> calls = 0;
  TrackStream* self = nullptr;
  TrackStream stream(
      options_of(2), image, {},
      [&](const FrameResult&) {
        ++calls;
        self->cancel();
      },
      20);
  self = &stream;
  for (int k = 0; k < 20; ++k) stream.push(image);
  stream.finish();
  EXPECT_LT(calls, 20);
  EXPECT_GE(calls, 1);
}

TEST(TrackStream, RefusesUselessSettings) {
  const Image image = frame(0);
  EXPECT_THROW(TrackStream(options_of(), image, {}, {}, 0), UsageError);
  EXPECT_THROW(TrackStream(options_of(), Image()), UsageError);
}

TEST(TrackStream, StreamsDoNotDisturbEachOther) {
  const auto run = [](double scale, std::vector<double>& found) {
    TrackStream stream(options_of(), frame(0), {},
                       [&](const FrameResult& result) { found.push_back(mean_u(result.field)); });
    for (int k = 0; k < 12; ++k) stream.push(frame(scale * k));
    stream.finish();
  };
  std::vector<double> slow, fast;
  std::thread other([&] { run(0.1, slow); });
  run(0.2, fast);
  other.join();
  ASSERT_EQ(slow.size() + fast.size(), 24u);
  for (int k = 0; k < 12; ++k) {
    EXPECT_NEAR(slow[k], 0.1 * k, 0.02);
    EXPECT_NEAR(fast[k], 0.2 * k, 0.02);
  }
}

/// Resident memory of this process, bytes.
double resident_bytes() {
  std::ifstream status("/proc/self/statm");
  double pages = 0, resident = 0;
  status >> pages >> resident;
  return 4096 * resident;
}

#ifndef __has_feature  // only Clang defines it
#define __has_feature(name) 0
#endif

TEST(TrackStream, MemoryStaysFlat) {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer keeps memory that was freed";
#endif
  const int size = 64;
  const Image reference = frame(0, size), moved = frame(1, size);
  TrackOptions options = options_of(20);
  options.reference_strategy = ReferenceStrategy::automatic;
  std::int64_t measured = 0;
  TrackStream stream(options, reference, {}, [&](const FrameResult& r) { measured += r.error.empty(); });
  const auto push_many = [&](int count) {
    for (int k = 0; k < count; ++k) stream.push(moved);
    stream.finish();
  };
  push_many(1000);
  const double before = resident_bytes();
  push_many(4000);
  EXPECT_EQ(measured, 5000);
  EXPECT_LT(resident_bytes() - before, 4e6) << "1 kB per frame would be 4 MB";
}

}  // namespace
}  // namespace dic

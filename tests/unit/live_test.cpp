#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/live.hpp>
#include <dic/result.hpp>
#include <dic/stereo.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "live/camera.hpp"
#include "live/camera_pair.hpp"
#include "live/frame_ids.hpp"
#include "live/line_sender.hpp"
#include "live/moving_specimen.hpp"
#include "live/pixel_format.hpp"
#include "live/recorder.hpp"
#include "live/result_writer.hpp"
#include "live/waiting_frames.hpp"

namespace dic::live {
namespace {

namespace fs = std::filesystem;

constexpr Size kImage{128, 96};

fs::path new_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("live_" + std::to_string(getpid()) + "_" + name);
  fs::remove_all(folder);
  return folder;
}

const MovingSpeckle& speckle() {
  static const MovingSpeckle frames(kImage);
  return frames;
}

/// Behaviour of a test camera.
struct Script {
  std::int64_t first_id = 1;
  std::int64_t frames = 1 << 30;        ///< frames until it vanishes
  std::chrono::milliseconds period{0};  ///< time between two frames
  std::int64_t lost_every = 0;          ///< every such frame is lost in the network
  std::int64_t silent_after = 1 << 30;  ///< number of frames after which nothing comes
  bool is_running = false;              ///< frames come by the clock; else when the camera is asked
  const MovingSpeckle* shown = nullptr;
};

/// A camera in this process with moving speckle, whose frame k is the state k of MovingSpeckle.
class TestCamera final : public LiveCamera {
 public:
  explicit TestCamera(const Script& script) : script_(script), id_(script.first_id - 1) {}

  std::string name() const override { return "test"; }
  std::vector<CameraSetting> settings() const override { return {{"gain", "7", "5", false}}; }
  void start() override {}
  std::optional<CameraFrame> next(std::chrono::milliseconds longest) override {
    if (script_.is_running ? !is_due(longest) : longest.count() == 0) return {};
    if (produced_ >= script_.frames) throw CameraLost("The camera test has vanished.");
    if (produced_ >= script_.silent_after) return {};
    if (!script_.is_running && script_.period.count() > 0) std::this_thread::sleep_for(script_.period);
    ++id_;
    ++produced_;
    if (script_.lost_every > 0 && id_ % script_.lost_every == 0) {
      ++losses_.network;
      return {};
    }
    CameraFrame frame;
    frame.id = id_;
    frame.camera_time = 1'000'000 * id_;
    frame.received = std::chrono::system_clock::now();
    frame.image = std::make_shared<const Image>(
        copy_of((script_.shown ? *script_.shown : speckle()).frame(id_).view()));
    return frame;
  }
  std::int64_t produced() const override { return produced_; }
  LiveDrops losses() const override { return losses_; }
  void stop() override {}

 private:
  /// Waits for the time of the next frame; false if that is later.
  bool is_due(std::chrono::milliseconds longest) {
    const auto now = std::chrono::steady_clock::now();
    std::this_thread::sleep_until(std::min(due_, now + longest));
    if (std::chrono::steady_clock::now() < due_) return false;
    due_ = std::chrono::steady_clock::now() + script_.period;
    return true;
  }

  std::chrono::steady_clock::time_point due_{};
  Script script_;
  std::int64_t id_, produced_ = 0;
  LiveDrops losses_;
};

OpenCamera camera_of(const Script& script) {
  return [script](const std::string&, const CameraSettings&) { return std::make_unique<TestCamera>(script); };
}

TrackJob small_job() {
  TrackJob job;
  job.options.refine.subset = 21;
  job.options.step = 16;
  job.options.device = "cpu";
  job.options.threads = 1;
  job.output.clear();
  job.pictures = Pictures::none;
  return job;
}

LiveOptions live_options(DropPolicy drop) {
  LiveOptions options;
  options.camera = "test";
  options.drop = drop;
  return options;
}

struct Measured {
  std::vector<LiveFrame> frames, events;
  LiveSummary summary;
};

Measured measure(const TrackJob& job, const LiveOptions& options, const OpenCamera& open) {
  Measured all;
  LiveStream stream(job, options, open);
  while (std::optional<LiveFrame> frame = stream.next())
    (frame->event.empty() ? all.frames : all.events).push_back(std::move(*frame));
  all.summary = stream.finish();
  return all;
}

void expect_exact_counts(const Measured& all) {
  EXPECT_EQ(all.summary.produced, all.summary.results + all.summary.drops.without_result());
  EXPECT_EQ(all.summary.results, std::ssize(all.frames));
  LiveDrops told;
  for (const LiveFrame& frame : all.frames) {
    told.network += frame.drops.network;
    told.measuring += frame.drops.measuring;
    EXPECT_GE(frame.drops.measuring, 0);
  }
  EXPECT_LE(told.measuring, all.summary.drops.measuring);
  EXPECT_LE(told.network, all.summary.drops.network);
}

/// All measured points have the displacement that the speckle has between the reference and the frame.
void expect_true_motion(const Measured& all, std::int64_t reference_id) {
  for (const LiveFrame& frame : all.frames) {
    ASSERT_TRUE(frame.field) << frame.error;
    const Field& field = *frame.field;
    std::int64_t ok = 0;
    for (int j = 0; j < field.grid().ny; ++j)
      for (int i = 0; i < field.grid().nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * field.grid().nx + i;
        if (!field.grid().inside[k] || field.status[k] != Status::ok) continue;
        ++ok;
        // Both states are stretched about the middle: small strains, so that their displacements differ by
        // 0.03 px from those between the states.
        const double x = field.grid().x(i), y = field.grid().y(j);
        const auto from = MovingSpeckle::displacement(kImage, x, y, MovingSpeckle::state_of(reference_id));
        const auto to = MovingSpeckle::displacement(kImage, x, y, MovingSpeckle::state_of(frame.id));
        EXPECT_NEAR(field.u[k], to[0] - from[0], 0.08) << frame.id;
        EXPECT_NEAR(field.v[k], to[1] - from[1], 0.08) << frame.id;
      }
    EXPECT_GT(ok, 0);
  }
}

TEST(FrameIds, AreCountedOnWhereTheyWrap) {
  FrameIds ids;
  EXPECT_EQ(ids.unwrap(65533), 65533);
  EXPECT_EQ(ids.unwrap(65535), 65535);
  EXPECT_EQ(ids.unwrap(1), 65536);  // GigE Vision has no id 0
  EXPECT_EQ(ids.unwrap(4), 65539);
  FrameIds with_zero;
  EXPECT_EQ(with_zero.unwrap(65535), 65535);
  EXPECT_EQ(with_zero.unwrap(0), 65536);
  EXPECT_EQ(with_zero.unwrap(65535), 131071);
  EXPECT_EQ(with_zero.unwrap(2), 131074);
  FrameIds wide;  // USB3 Vision: 64 bits
  EXPECT_EQ(wide.unwrap(65535), 65535);
  EXPECT_EQ(wide.unwrap(65536), 65536);
  EXPECT_EQ(wide.unwrap(90000), 90000);
  FrameIds restarted;
  restarted.unwrap(500);
  EXPECT_EQ(restarted.unwrap(1), 501);
}

TEST(FrameIds, StayExactOverManyWraps) {
  FrameIds ids;
  std::uint64_t raw = 1;
  std::int64_t whole = 1;
  for (int k = 0; k < 500; ++k) {
    EXPECT_EQ(ids.unwrap(raw), whole);
    const std::int64_t step = 1 + k * 37 % 20000;
    whole += step;
    raw = static_cast<std::uint64_t>((whole - 1) % 65535 + 1);
  }
}

// ---- Pixel formats ----

TEST(PixelFormat, GreyOfTenToSixteenBits) {
  const std::vector<std::uint8_t> wide = {0x34, 0x12, 0xff, 0x0f};
  const Image image = image_of(wide, {2, 1}, 0x01100005);  // Mono12
  EXPECT_EQ(image.row<std::uint16_t>(0)[0], 0x1234);
  EXPECT_EQ(image.row<std::uint16_t>(0)[1], 4095);
  EXPECT_EQ(image.bit_depth(), 12);
  EXPECT_EQ(image_of(wide, {2, 1}, 0x01100007).bit_depth(), 0);  // Mono16
  EXPECT_EQ(image_of(wide, {4, 1}, 0x01080001).row<std::uint8_t>(0)[1], 0x12);
}

/// Packs samples bit by bit, the lowest first.
std::vector<std::uint8_t> packed_from_lowest_bit(const std::vector<int>& samples, int bits) {
  std::vector<std::uint8_t> bytes((samples.size() * static_cast<std::size_t>(bits) + 7) / 8);
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (int b = 0; b < bits; ++b) {
      const std::size_t at = i * static_cast<std::size_t>(bits) + static_cast<std::size_t>(b);
      if (samples[i] >> b & 1) bytes[at / 8] = static_cast<std::uint8_t>(bytes[at / 8] | 1 << at % 8);
    }
  return bytes;
}

TEST(PixelFormat, PackedGrey) {
  const std::vector<int> ten = {1023, 0, 5, 512, 700, 1}, twelve = {4095, 1, 2048, 77, 3, 4000};
  const Image p10 = image_of(packed_from_lowest_bit(ten, 10), {3, 2}, 0x010A0046);
  const Image p12 = image_of(packed_from_lowest_bit(twelve, 12), {3, 2}, 0x010C0047);
  // GigE Vision: high byte of the first, both low parts, high byte of the second sample.
  std::vector<std::uint8_t> pairs;
  for (std::size_t i = 0; i < twelve.size(); i += 2)
    for (const int byte : {twelve[i] >> 4, (twelve[i] & 15) | (twelve[i + 1] & 15) << 4, twelve[i + 1] >> 4})
      pairs.push_back(static_cast<std::uint8_t>(byte));
  const Image packed = image_of(pairs, {3, 2}, 0x010C0006);
  for (int k = 0; k < 6; ++k) {
    EXPECT_EQ(p10.row<std::uint16_t>(k / 3)[k % 3], ten[static_cast<std::size_t>(k)]);
    EXPECT_EQ(p12.row<std::uint16_t>(k / 3)[k % 3], twelve[static_cast<std::size_t>(k)]);
    EXPECT_EQ(packed.row<std::uint16_t>(k / 3)[k % 3], twelve[static_cast<std::size_t>(k)]);
  }
}

TEST(PixelFormat, ColourBecomesLuma) {
  const std::vector<std::uint8_t> rgb = {200, 100, 50, 9, 9, 9};
  const auto expected = static_cast<int>(std::lround(0.299 * 200 + 0.587 * 100 + 0.114 * 50));
  EXPECT_EQ(image_of(rgb, {2, 1}, 0x02180014).row<std::uint8_t>(0)[0], expected);
  const std::vector<std::uint8_t> bgr = {50, 100, 200, 9, 9, 9};
  EXPECT_EQ(image_of(bgr, {2, 1}, 0x02180015).row<std::uint8_t>(0)[0], expected);
  EXPECT_EQ(image_of(bgr, {2, 1}, 0x02180015).row<std::uint8_t>(0)[1], 9);
}

TEST(PixelFormat, OtherFormatsAndShortBuffersAreRefused) {
  const std::vector<std::uint8_t> few(11);
  EXPECT_THROW(image_of(few, {4, 3}, 0x01080001), DeviceError);
  EXPECT_THROW(image_of(few, {4, 2}, 0x010C0047), DeviceError);
  EXPECT_THROW(image_of(few, {2, 2}, 0x01080009), DeviceError);  // Bayer
}

// ---- Frames that wait ----

CameraFrame with_id(std::int64_t id) {
  CameraFrame frame;
  frame.id = id;
  return frame;
}

TEST(WaitingFrames, TheNewestReplacesTheOneThatWaits) {
  WaitingFrames frames(DropPolicy::newest, 10);
  EXPECT_EQ(frames.add(with_id(1)), WaitingFrames::Added::waits);
  EXPECT_EQ(frames.add(with_id(2)), WaitingFrames::Added::replaced_another);
  EXPECT_EQ(frames.take()->id, 2);
  frames.close();
  EXPECT_FALSE(frames.take());
}

TEST(WaitingFrames, OthersOverflow) {
  for (const DropPolicy policy : {DropPolicy::never, DropPolicy::stop}) {
    WaitingFrames frames(policy, 2);
    frames.add(with_id(1));
    frames.add(with_id(2));
    EXPECT_EQ(frames.add(with_id(3)), WaitingFrames::Added::overflows);
    EXPECT_EQ(frames.take()->id, 1);
    EXPECT_FALSE(frames.wait_until_idle(std::chrono::milliseconds(1)));
    EXPECT_EQ(frames.clear(), 1);
  }
}

// ---- Measuring ----

TEST(LiveStream, MeasuresTheMotionOfTheFrames) {
  LiveOptions options = live_options(DropPolicy::never);
  options.until_frames = 12;
  const Measured all = measure(small_job(), options, camera_of({}));
  ASSERT_EQ(all.frames.size(), 12u);
  EXPECT_EQ(all.summary.produced, 12);
  EXPECT_EQ(all.summary.drops.without_result(), 0);
  EXPECT_TRUE(all.summary.problem.empty()) << all.summary.problem;
  for (std::size_t k = 0; k < all.frames.size(); ++k) {
    EXPECT_EQ(all.frames[k].id, static_cast<std::int64_t>(k) + 2);  // 1 is the reference
    EXPECT_NEAR(all.frames[k].time, 0.001 * static_cast<double>(k + 1), 1e-12);
    EXPECT_EQ(all.frames[k].number, static_cast<int>(k) + 1);
  }
  expect_exact_counts(all);
  expect_true_motion(all, 1);
  ASSERT_EQ(all.events.size(), 2u);
  EXPECT_EQ(all.events[0].event, "start");
  EXPECT_NE(all.events[1].text.find("took 5 for gain instead of 7"), std::string::npos) << all.events[1].text;
}

TEST(LiveStream, TheNewestFrameIsMeasuredAndEveryLossCounted) {
  LiveOptions options = live_options(DropPolicy::newest);
  options.until_frames = 8;
  const Measured all = measure(small_job(), options, camera_of({.lost_every = 5}));
  EXPECT_EQ(all.summary.results, 8);
  EXPECT_GT(all.summary.drops.measuring, 0);  // the camera is faster than any measurement
  EXPECT_GT(all.summary.drops.network, 0);
  expect_exact_counts(all);
  expect_true_motion(all, 1);
}

TEST(LiveStream, EndsWholeAtTheFirstLossWhereNoneMayBe) {
  const Measured all = measure(small_job(), live_options(DropPolicy::stop), camera_of({}));
  EXPECT_NE(all.summary.problem.find("cannot keep up"), std::string::npos) << all.summary.problem;
  EXPECT_EQ(all.summary.drops.measuring, 1);
  EXPECT_GE(all.summary.results, 16);  // all that waited
  expect_exact_counts(all);
  const Measured lost = measure(small_job(), live_options(DropPolicy::stop),
                                camera_of({.period = std::chrono::milliseconds(30), .lost_every = 4}));
  EXPECT_FALSE(lost.summary.problem.empty());
  EXPECT_EQ(lost.summary.drops.network, 1);
  expect_exact_counts(lost);
}

TEST(LiveStream, StopEndsItWhole) {
  LiveStream stream(small_job(), live_options(DropPolicy::newest), camera_of({}));
  std::int64_t results = 0;
  while (const std::optional<LiveFrame> frame = stream.next()) {
    results += frame->event.empty() ? 1 : 0;
    if (results == 3) stream.stop();
  }
  const LiveSummary summary = stream.finish();
  EXPECT_EQ(summary.results, results);
  EXPECT_EQ(summary.produced, results + summary.drops.without_result());
  EXPECT_TRUE(summary.problem.empty());
}

TEST(LiveStream, ACameraThatVanishesLeavesAWholeResult) {
  TrackJob job = small_job();
  job.output = new_folder("vanished");
  const Measured all = measure(job, live_options(DropPolicy::never), camera_of({.frames = 7}));
  EXPECT_EQ(all.summary.results, 6);
  EXPECT_NE(all.summary.problem.find("vanished"), std::string::npos) << all.summary.problem;
  expect_exact_counts(all);
  const Result result(job.output / "result.vtkhdf");
  EXPECT_EQ(result.frame_count(), 6);
  EXPECT_EQ(result.info().time_unit, "s");
  fs::remove_all(job.output);
}

TEST(LiveStream, GoesOnWhenTheCameraIsBack) {
  int opened = 0;
  const OpenCamera open = [&](const std::string&, const CameraSettings&) -> std::unique_ptr<LiveCamera> {
    if (++opened == 2) throw DeviceError("There is no camera test.");
    return std::make_unique<TestCamera>(Script{.frames = 4});
  };
  LiveOptions options = live_options(DropPolicy::never);
  options.wait_for_camera = 600;
  options.until_frames = 6;
  const Measured all = measure(small_job(), options, open);
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(all.summary.results, 6);
  expect_exact_counts(all);
  for (std::size_t k = 1; k < all.frames.size(); ++k) {
    EXPECT_EQ(all.frames[k].id, all.frames[k - 1].id + 1);
    EXPECT_GT(all.frames[k].time, all.frames[k - 1].time);
  }
  std::vector<std::string> events;
  for (const LiveFrame& event : all.events) events.push_back(event.event);
  EXPECT_EQ(events, (std::vector<std::string>{"start", "note", "lost", "back"}));
}

/// A camera that vanishes after some frames, and is back at once with its ids and clock from the beginning.
Measured measure_with_interruption(std::int64_t frames_before, std::int64_t results) {
  int opened = 0;
  const OpenCamera open = [&](const std::string&, const CameraSettings&) {
    const bool is_first = ++opened == 1;
    return std::make_unique<TestCamera>(
        Script{.first_id = is_first ? 40 : 1, .frames = is_first ? frames_before : 1 << 30});
  };
  LiveOptions options = live_options(DropPolicy::never);
  options.wait_for_camera = 600;
  options.until_frames = results;
  return measure(small_job(), options, open);
}

TEST(LiveStream, FramesThatWaitKeepTheirTimesWhenTheCameraIsBack) {
  // The camera is faster than the measurement: most of its 30 frames wait when it is opened again.
  const Measured all = measure_with_interruption(31, 33);
  ASSERT_EQ(all.frames.size(), 33u);
  for (std::size_t k = 0; k < 30; ++k) {
    EXPECT_EQ(all.frames[k].id, static_cast<std::int64_t>(k) + 41);
    EXPECT_NEAR(all.frames[k].time, 0.001 * static_cast<double>(k + 1), 1e-12) << k;
  }
  EXPECT_GT(all.frames[30].time, 0.03);
  EXPECT_LT(all.frames[30].time, 60);
  for (std::size_t k = 31; k < 33; ++k) EXPECT_NEAR(all.frames[k].time - all.frames[k - 1].time, 0.001, 1e-9);
}

TEST(LiveStream, TimesGoOnFromTheReferenceIfNoFrameFollowedIt) {
  const Measured all = measure_with_interruption(1, 2);
  ASSERT_EQ(all.frames.size(), 2u);
  EXPECT_EQ(all.frames[0].id, 41);  // 40 is the reference
  EXPECT_GT(all.frames[0].time, 0);
  EXPECT_LT(all.frames[0].time, 60);
  EXPECT_NEAR(all.frames[1].time - all.frames[0].time, 0.001, 1e-9);
}

TEST(LiveStream, RecordedFramesTrackedAgainGiveTheSameBits) {
  LiveOptions options = live_options(DropPolicy::never);
  options.record = new_folder("record");
  options.until_frames = 6;
  const TrackJob job = small_job();
  const Measured all = measure(job, options, camera_of({}));
  EXPECT_EQ(all.summary.recorded, 7);
  EXPECT_EQ(all.summary.drops.recorder, 0);
  Tracker again(job.options, read_image(options.record / Recorder::name_of(1)));
  for (const LiveFrame& frame : all.frames) {
    const Field field = again.track(read_image(options.record / frame.name)).field;
    ASSERT_EQ(field.u.size(), frame.field->u.size());
    for (std::size_t k = 0; k < field.u.size(); ++k) {
      EXPECT_EQ(field.status[k], frame.field->status[k]);
      if (field.status[k] != Status::ok) continue;
      EXPECT_EQ(field.u[k], frame.field->u[k]);
      EXPECT_EQ(field.v[k], frame.field->v[k]);
      EXPECT_EQ(field.sigma_u[k], frame.field->sigma_u[k]);
    }
  }
  EXPECT_THROW(measure(job, options, camera_of({})), FileError);  // the folder is not empty
  fs::remove_all(options.record);
}

TEST(LiveStream, MeasuresOnlyWhatExtensometersNeed) {
  TrackJob job = small_job();
  LiveOptions options = live_options(DropPolicy::never);
  options.until_frames = 5;
  options.extensometers = {{Position{32, 48}, Position{96, 48}}};
  options.only_extensometers = true;
  const Measured all = measure(job, options, camera_of({}));
  EXPECT_EQ(all.summary.track.points, 2);
  for (const LiveFrame& frame : all.frames) {
    const ExtensometerValues values = probe_extensometer(*frame.field, {32, 48}, {96, 48});
    const double expected = 0.01 * (MovingSpeckle::state_of(frame.id) - 1) / (MovingSpeckle::kStates - 1);
    EXPECT_NEAR(values.strain, expected, 5 * values.sigma_strain + 1e-4);
    EXPECT_NE(frame.line.find("\"extensometers\":[{\"gauge_length\":64.0"), std::string::npos) << frame.line;
  }
}

/// Fate of the frame that a trigger asks for.
enum class Fate : std::uint8_t { whole, lost_in_network, without_buffer, missed };

/// A camera whose frames show the number of their trigger, and whose clock has its own zero and speed.
class TriggeredCamera final : public LiveCamera {
 public:
  using Begin = std::chrono::system_clock::time_point;
  static constexpr std::chrono::milliseconds kPeriod{10};

  TriggeredCamera(Begin begin, int first, int last, std::map<int, Fate> fates, double clock = 1)
      : begin_(begin), trigger_(first), last_(last), fates_(std::move(fates)), clock_(clock) {}

  std::string name() const override { return "triggered"; }
  std::vector<CameraSetting> settings() const override { return {}; }
  void start() override {}
  /// One frame at a time, so that the frames of both cameras arrive in turn.
  std::optional<CameraFrame> next(std::chrono::milliseconds) override {
    is_others_turn_ = !is_others_turn_;
    if (!is_others_turn_) return {};
    for (; trigger_ <= last_; ++trigger_) {
      const Fate fate = fates_.contains(trigger_) ? fates_.at(trigger_) : Fate::whole;
      if (fate == Fate::whole) return frame_of(trigger_++);
      if (fate != Fate::missed)
        ++(later_.*(fate == Fate::lost_in_network ? &LiveDrops::network : &LiveDrops::no_buffer));
    }
    return {};
  }
  bool is_done() const { return trigger_ > last_; }
  std::int64_t produced() const override { return 0; }  // a pair counts by losses
  LiveDrops losses() const override { return losses_; }
  void stop() override {}

 private:
  CameraFrame frame_of(int trigger) {
    losses_ = later_;
    CameraFrame frame;
    Image image({8, 8}, ScalarType::f64);
    image.row<double>(0)[0] = trigger;
    frame.image = std::make_shared<const Image>(std::move(image));
    frame.camera_time = 5'000'000 + static_cast<std::int64_t>(clock_ * trigger * 1e6 * kPeriod.count());
    frame.received = begin_ + trigger * kPeriod;
    return frame;
  }

  Begin begin_;
  int trigger_, last_;
  bool is_others_turn_ = false;
  std::map<int, Fate> fates_;
  double clock_;
  LiveDrops losses_, later_;  ///< those that are known, and those that the next frame shows
};

struct Pairs {
  std::vector<int> triggers;
  std::int64_t produced = 0;
  LiveDrops losses;
};

/// All pairs of two cameras; those of a trigger must be of the same one.
Pairs pairs_of(std::unique_ptr<TriggeredCamera> left, std::unique_ptr<TriggeredCamera> right) {
  const TriggeredCamera &of_left = *left, &of_right = *right;
  CameraPair both(std::move(left), std::move(right));
  Pairs pairs;
  for (;;) {
    const auto pair = both.next(std::chrono::milliseconds(1));
    if (!pair && of_left.is_done() && of_right.is_done()) break;
    if (!pair) continue;
    const auto trigger_of = [](const Image& image) { return static_cast<int>(image.row<double>(0)[0]); };
    pairs.triggers.push_back(trigger_of(*pair->image));
    EXPECT_EQ(trigger_of(*pair->right), pairs.triggers.back());
  }
  pairs.produced = both.produced();
  pairs.losses = both.losses();
  EXPECT_EQ(pairs.produced, std::ssize(pairs.triggers) + pairs.losses.without_result());
  return pairs;
}

std::unique_ptr<TriggeredCamera> triggered(int first, int last, const std::map<int, Fate>& fates = {},
                                           double clock = 1) {
  static const auto begin = std::chrono::system_clock::now() + std::chrono::hours(1);  // nothing is late
  return std::make_unique<TriggeredCamera>(begin, first, last, fates, clock);
}

TEST(CameraPair, FramesOfATriggerBelongTogether) {
  const Pairs pairs = pairs_of(triggered(1, 20), triggered(1, 20));
  ASSERT_EQ(pairs.triggers.size(), 20U);
  EXPECT_EQ(pairs.triggers.back(), 20);
  EXPECT_EQ(pairs.losses.without_result(), 0);
}

TEST(CameraPair, TheCameraThatIsReadyFirstHasFramesWithoutPartners) {
  const Pairs pairs = pairs_of(triggered(5, 20), triggered(1, 20));
  EXPECT_EQ(pairs.triggers.front(), 5);
  EXPECT_EQ(pairs.triggers.size(), 16U);
}

TEST(CameraPair, APairIsLostForTheCauseOfItsFrame) {
  const Pairs pairs = pairs_of(
      triggered(1, 30, {{5, Fate::lost_in_network}, {9, Fate::lost_in_network}}),
      triggered(1, 30, {{8, Fate::without_buffer}, {9, Fate::without_buffer}, {10, Fate::without_buffer}}));
  EXPECT_EQ(pairs.triggers.size(), 26U);
  EXPECT_EQ(pairs.losses.network, 2);
  EXPECT_EQ(pairs.losses.no_buffer, 2);
}

/// Many cameras do not number a frame whose trigger came too early.
TEST(CameraPair, AMissedTriggerShiftsNothing) {
  for (const bool left_misses : {false, true}) {
    const std::map<int, Fate> misses = {
        {4, Fate::missed}, {11, Fate::missed}, {12, Fate::missed}, {13, Fate::lost_in_network}};
    const Pairs pairs = left_misses ? pairs_of(triggered(1, 30, misses), triggered(1, 30))
                                    : pairs_of(triggered(1, 30), triggered(1, 30, misses));
    EXPECT_EQ(pairs.triggers.size(), 26U);
    EXPECT_EQ(pairs.losses.without_result(), 4);
    EXPECT_EQ(pairs.losses.network, 1);
  }
}

TEST(CameraPair, ClocksMayRunApart) {
  const Pairs pairs = pairs_of(triggered(1, 20'000), triggered(1, 20'000, {{15'000, Fate::missed}}, 1.0001));
  EXPECT_EQ(pairs.triggers.size(), 19'999U);
  EXPECT_EQ(pairs.losses.camera, 1);
}

TEST(CameraPair, ASilentCameraDoesNotFillTheMemory) {
  const Pairs pairs = pairs_of(triggered(1, 5000), triggered(1, 10));
  EXPECT_EQ(pairs.triggers.size(), 10U);
  EXPECT_EQ(pairs.losses.camera, 5000 - 10 - 64);
}

/// A rig with two test cameras that see a moving specimen.
class LivePair : public testing::Test {
 protected:
  static constexpr Size kSize{160, 120};
  static constexpr std::int64_t kReference = 30;  ///< id of a frame at rest

  LivePair() {
    fs::create_directories(folder_);
    write_camera_rig(folder_ / "rig.json", moving_specimen(kSize).rig);
    options_.right_camera = "right";
    options_.calibration = folder_ / "rig.json";
    options_.until_frames = 8;
  }
  ~LivePair() override { fs::remove_all(folder_); }

  static const MovingSpeckle& frames_of(const std::string& camera) {
    static const MovingSpeckle left = frames_of_specimen(kSize, 0), right = frames_of_specimen(kSize, 1);
    return camera == "right" ? right : left;
  }

  OpenCamera cameras(std::int64_t lost_every = 0) const {
    return [=](const std::string& name, const CameraSettings&) {
      Script script{.first_id = kReference, .lost_every = name == "right" ? lost_every : 0};
      script.shown = &frames_of(name);
      return std::make_unique<TestCamera>(script);
    };
  }

  fs::path folder_ = new_folder("pair");
  TrackJob job_ = small_job();
  LiveOptions options_ = live_options(DropPolicy::never);
};

TEST_F(LivePair, MeasuresTheMotionInSpace) {
  const StereoScene scene(moving_specimen(kSize));
  const Position a{48, 64}, b{112, 64};
  job_.roi.points = {a, b};
  options_.extensometers = {{a, b}};
  const Measured all = measure(job_, options_, cameras());
  expect_exact_counts(all);
  EXPECT_EQ(all.frames.size(), 8U);
  for (const LiveFrame& frame : all.frames) {
    const int state = MovingSpeckle::state_of(frame.id);
    for (const Position& at : {a, b}) {
      const SurfacePoint point = probe_surface_point(*frame.field, at);
      const StereoTruth truth = scene.truth(state, at.x, at.y);
      ASSERT_EQ(point.problem, "");
      for (std::size_t c = 0; c < 3; ++c) {
        // A pixel shows 1.25 mm, and is 2.9 mm deep: 0.2 mm are 0.07 px.
        EXPECT_NEAR(point.position[c], truth.position_mm[c], 5 * point.sigma_position[c] + 0.2) << c;
        EXPECT_NEAR(point.displacement[c], truth.displacement_mm[c], 5 * point.sigma_displacement[c] + 0.02)
            << c;
      }
      EXPECT_LT(std::abs(point.epipolar), 0.3);
    }
    // The gauge lies along the stretched axis of the specimen.
    const ExtensometerValues gauge = probe_surface_extensometer(*frame.field, a, b);
    EXPECT_NEAR(gauge.strain, 0.01 * MovingSpeckle::amount_of(state), 5 * gauge.sigma_strain + 2e-4);
    EXPECT_LT(gauge.sigma_strain, 1e-3);
    for (const char* key : {"\"mean_W\":", "\"sigma_U\":", "\"epipolar\":", "\"epipolar_median\":"})
      EXPECT_NE(frame.line.find(key), std::string::npos) << frame.line;
  }
}

TEST_F(LivePair, PairsWithoutOneFrameAreCounted) {
  const Measured all = measure(job_, options_, cameras(4));
  expect_exact_counts(all);
  EXPECT_GE(all.summary.drops.network, 2);
  const StereoScene scene(moving_specimen(kSize));
  for (const LiveFrame& frame : all.frames) {
    const StereoTruth truth = scene.truth(MovingSpeckle::state_of(frame.id), 80, 64);
    EXPECT_NEAR(probe_surface_point(*frame.field, {80, 64}).displacement[2], truth.displacement_mm[2], 0.1);
  }
}

TEST_F(LivePair, CamerasWithoutACommonTriggerAreTold) {
  LiveStream stream(job_, options_, [](const std::string& name, const CameraSettings&) {
    Script script{.first_id = kReference, .period = std::chrono::milliseconds(2), .is_running = true};
    script.shown = &frames_of(name);
    if (name == "right") script.silent_after = 1;  // after the reference
    return std::make_unique<TestCamera>(script);
  });
  std::string told;
  while (const std::optional<LiveFrame> frame = stream.next()) {
    if (frame->text.find("one trigger") == std::string::npos) continue;
    told += frame->text;
    stream.stop();
  }
  EXPECT_EQ(told.find("one trigger"), told.rfind("one trigger")) << told;  // once
  const LiveSummary summary = stream.finish();
  EXPECT_EQ(summary.results, 0);
  EXPECT_GE(summary.drops.camera, 100);
  EXPECT_EQ(summary.produced, summary.drops.without_result());
}

TEST_F(LivePair, RecordedPairsMeasuredAgainGiveTheSameBits) {
  options_.record = folder_ / "frames";
  job_.output = folder_ / "result";
  const Measured all = measure(job_, options_, cameras());
  EXPECT_EQ(all.summary.recorded, 9);
  const auto read = [&](const char* side, const std::string& name) {
    return read_image(options_.record / side / name);
  };
  const std::string reference = Recorder::name_of(kReference);
  StereoOptions stereo;
  stereo.track = job_.options;
  StereoTracker again(stereo, moving_specimen(kSize).rig, read("left", reference), read("right", reference));
  const Result result(job_.output);
  for (const LiveFrame& frame : all.frames) {
    const Field field = again.track(read("left", frame.name), read("right", frame.name)).field;
    const auto written = result.values<double>("W", frame.number - 1);
    for (std::size_t k = 0; k < field.status.size(); ++k) {
      ASSERT_EQ(field.status[k], frame.field->status[k]);
      if (!has_values(field.status[k])) continue;
      EXPECT_EQ(field.stereo.w[k], frame.field->stereo.w[k]);
      EXPECT_EQ(field.stereo.sigma_u[k], frame.field->stereo.sigma_u[k]);
      EXPECT_EQ(field.stereo.w[k], written[k]);
    }
  }
}

/// Points of the surface have z = 0 in axes of the plane, and its motion is turned as they are.
TEST_F(LivePair, AxesOfThePlane) {
  set_live_option(options_, "axes", "plane");
  job_.options.step = 8;
  const Measured all = measure(job_, options_, cameras());
  const StereoScene scene(moving_specimen(kSize));
  for (const LiveFrame& frame : all.frames) {
    const SurfacePoint point = probe_surface_point(*frame.field, {80, 64});
    ASSERT_EQ(point.problem, "");
    EXPECT_NEAR(point.position[2], 0, 5 * point.sigma_position[2] + 0.2);
    // The specimen faces the cameras, so that towards them is against z.
    const StereoTruth truth = scene.truth(MovingSpeckle::state_of(frame.id), 80, 64);
    const auto length = [](const std::array<double, 3>& v) { return std::hypot(v[0], v[1], v[2]); };
    const double tolerance = 5 * length(point.sigma_displacement) + 0.02;
    EXPECT_NEAR(length(point.displacement), length(truth.displacement_mm), tolerance);
    EXPECT_NEAR(point.displacement[2], -2 * MovingSpeckle::amount_of(MovingSpeckle::state_of(frame.id)),
                tolerance);
  }
}

TEST_F(LivePair, ACalibrationThatDoesNotFitIsDoubted) {
  CameraRig moved = moving_specimen(kSize).rig;
  moved.cameras[1].translation_mm[1] += 0.8;  // 0.6 px beside the epipolar lines
  write_camera_rig(folder_ / "rig.json", moved);
  options_.until_frames = 1;
  const Measured all = measure(job_, options_, cameras());
  ASSERT_EQ(all.events.size(), 4U);  // the start, a setting of each camera, and the doubt
  EXPECT_NE(all.events[1].text.find("have moved since their calibration"), std::string::npos)
      << all.events[1].text;
  set_live_option(options_, "correct-rig", "true");
  EXPECT_EQ(measure(job_, options_, cameras()).events.size(), 3U);
}

TEST_F(LivePair, SettingsOfOneCameraAreRefused) {
  const auto refused = [&](const char* word) {
    try {
      measure(job_, options_, cameras());
      ADD_FAILURE() << word;
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  job_.scale_mm_per_px = 0.1;
  refused("scale");
  job_.scale_mm_per_px = 0;
  job_.reference = "a.png";
  refused("reference");
  job_.reference.clear();
  options_.calibration.clear();
  refused("calibration");
  options_.calibration = folder_ / "rig.json";
  options_.right_camera = options_.camera;
  refused("same");
  options_.right_camera.clear();
  refused("no right camera");
}

/// Bytes that the C library has handed out, in all of its arenas.
std::int64_t bytes_in_use() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  malloc_info(0, stream);
  std::fclose(stream);
  const std::string xml(text, size);
  std::free(text);
  const auto last = [&](const std::string& before) {
    const std::size_t at = xml.find("size=\"", xml.rfind(before));
    return std::stoll(xml.substr(at + 6));
  };
  return last("<system type=\"current\"") + last("<total type=\"mmap\"") - last("<total type=\"fast\"") -
         last("<total type=\"rest\"");
}

/// Neither memory nor the bytes of a frame may grow with the number of frames: a camera runs for days.
TEST(ResultWriter, MemoryDoesNotGrowWithTheFrames) {
  TrackJob job = small_job();
  job.output = new_folder("memory");
  Grid grid{.x0 = 0, .y0 = 0, .step = 4, .nx = 20, .ny = 20, .inside = std::vector<std::uint8_t>(400)};
  grid.inside[7] = grid.inside[390] = 1;
  const auto field = std::make_shared<const Field>(grid);
  ResultInfo info;
  info.image = kImage;
  info.settings_json = "{}";
  TrackSummary summary;
  constexpr std::int64_t kFrames = 3 * ResultWriter::kMostDescribed;
  std::array<std::int64_t, 3> used{}, stored{};
  ResultWriter writer(job, grid, info, summary);
  for (std::size_t k = 0; k < used.size(); ++k) {
    for (std::int64_t frame = 0; frame < kFrames; ++frame) ASSERT_TRUE(writer.add({field, nullptr, {}, {}}));
    used[k] = bytes_in_use();
    for (const auto& file : fs::recursive_directory_iterator(job.output))
      stored[k] += static_cast<std::int64_t>(file.file_size());
  }
  writer.finish();
  // HDF5's index of 17 arrays grows with the root of the number of frames, up to 2 MB. On a busy machine,
  // frames that wait for the writer add to it.
  EXPECT_LT(used[2] - used[1], 250 * kFrames);
  EXPECT_LT(stored[2] - stored[1], 2000 * kFrames);
  EXPECT_EQ(std::ssize(summary.frames), ResultWriter::kMostDescribed);
  EXPECT_EQ(summary.frames_beyond, 3 * kFrames - ResultWriter::kMostDescribed);
  EXPECT_EQ(Result(job.output / "result.vtkhdf").frame_count(), 3 * kFrames);
  fs::remove_all(job.output);
}

/// What a measurement holds after many frames is what it holds after few; its files are those of
/// ResultWriter. The resident memory may still rise to the peaks of frames that waited, which the C library
/// keeps.
TEST(LiveStream, MemoryDoesNotGrowWithTheFrames) {
  LiveOptions options = live_options(DropPolicy::newest);
  options.extensometers = {{Position{32, 48}, Position{96, 48}}};
  options.only_extensometers = true;
  constexpr int kFew = 300, kMany = 1500;
  options.until_frames = kMany;
  std::int64_t few = 0, many = 0;
  LiveStream stream(small_job(), options, camera_of({}));
  while (const std::optional<LiveFrame> frame = stream.next()) {
    if (frame->number == kFew) few = bytes_in_use();
    if (frame->number == kMany) many = bytes_in_use();
  }
  EXPECT_EQ(stream.finish().results, kMany);
  EXPECT_LT(many - few, 250 * (kMany - kFew));  // 20 images of 12 kB may wait
}

TEST(LiveStream, WrongOptionsAreRefused) {
  LiveOptions options = live_options(DropPolicy::newest);
  options.settings.frame_rate = -1;
  EXPECT_THROW(measure(small_job(), options, camera_of({})), UsageError);
  options = live_options(DropPolicy::newest);
  options.udp = "nowhere";
  EXPECT_THROW(measure(small_job(), options, camera_of({})), UsageError);
  TrackJob job = small_job();
  job.pictures = Pictures::all;
  EXPECT_THROW(measure(job, live_options(DropPolicy::newest), camera_of({})), UsageError);
}

// ---- Lines for other programs ----

int connected(int port) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return client;
}

std::string read_all(int client) {
  std::string text(1 << 16, '\0'), all;
  for (ssize_t got = 0; (got = recv(client, text.data(), text.size(), 0)) > 0;)
    all.append(text, 0, static_cast<std::size_t>(got));
  return all;
}

TEST(LineSender, EveryProgramGetsEveryLineFromItsConnectionOn) {
  int early = -1, late = -1;
  {
    LineSender sender("", 0);
    early = connected(sender.tcp_port());
    sender.send("start\n");
    sender.send("one\n");
    late = connected(sender.tcp_port());
    sender.send("two\n");
    sender.send("three\n");
  }
  EXPECT_EQ(read_all(early), "start\none\ntwo\nthree\n");
  EXPECT_EQ(read_all(late), "start\nthree\n");
  close(early);
  close(late);
}

TEST(LineSender, AProgramThatDoesNotReadIsCutOffAndSlowsNothing) {
  LineSender sender("", 0);
  const int asleep = connected(sender.tcp_port()), awake = connected(sender.tcp_port());
  sender.send("start\n");
  const std::string line(10000, 'x');
  std::size_t got = 0;
  std::string buffer(1 << 16, '\0');
  for (int k = 0; k < 3000 && sender.cut_off() == 0; ++k) {
    sender.send(line + "\n");
    for (ssize_t part = 0; (part = recv(awake, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;)
      got += static_cast<std::size_t>(part);
  }
  EXPECT_EQ(sender.cut_off(), 1);
  EXPECT_GT(got, line.size());
  close(asleep);
  close(awake);
}

TEST(LineSender, SendsPacketsByUdp) {
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(receiver, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  socklen_t bytes = sizeof address;
  getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &bytes);
  LineSender sender("127.0.0.1:" + std::to_string(ntohs(address.sin_port)), {});
  sender.send("start\n");
  sender.send("one\n");
  std::string text(100, '\0');
  EXPECT_EQ(recv(receiver, text.data(), text.size(), 0), 6);
  EXPECT_EQ(recv(receiver, text.data(), text.size(), 0), 4);
  EXPECT_EQ(text.substr(0, 4), "one\n");
  close(receiver);
  EXPECT_THROW(LineSender("no port", {}), UsageError);
}

}  // namespace
}  // namespace dic::live

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/kernels/device.hpp>
#include <dic/track_stream.hpp>
#include <fstream>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests that a stream on the GPU gives the results of a Tracker regardless of what else runs.
namespace dic {
namespace {

constexpr int width = 301, height = 240;

/// Frames of speckle; frame k has moved by (0.3 k, -0.2 k) px.
std::vector<Image> frames(int count, unsigned seed, int w = width, int h = height) {
  const test::Speckle speckle(w, h, 2, seed, 40);
  std::vector<Image> out;
  for (int k = 0; k < count; ++k)
    out.push_back(test::converted<std::uint8_t>(
        test::image_of(w, h, [&](int x, int y) { return test::grey_of(speckle(x - 0.3 * k, y + 0.2 * k)); }),
        ScalarType::u8));
  return out;
}

TrackOptions options(ReferenceStrategy strategy = ReferenceStrategy::first) {
  TrackOptions out;
  out.step = 6;
  out.device = "cuda";
  out.reference_strategy = strategy;
  return out;
}

std::vector<Field> tracked_one_by_one(const std::vector<Image>& images, ReferenceStrategy strategy) {
  Tracker tracker(options(strategy), images[0]);
  std::vector<Field> fields;
  for (const Image& image : images) fields.push_back(tracker.track(image).field);
  return fields;
}

/// Expects equality to the bit; NaN equals NaN where a point was not measured.
void expect_same(const Field& a, const Field& b) {
  EXPECT_EQ(a.status, b.status);
  ASSERT_EQ(a.u.size(), b.u.size());
  std::size_t measured = 0;
  for (std::size_t i = 0; i < a.u.size(); ++i) {
    if (a.status[i] != Status::ok) continue;
    ++measured;
    ASSERT_EQ(a.u[i], b.u[i]) << "node " << i;
    ASSERT_EQ(a.v[i], b.v[i]) << "node " << i;
    ASSERT_EQ(a.zncc[i], b.zncc[i]) << "node " << i;
  }
  EXPECT_GT(measured, a.u.size() / 2);
}

void check_stream(unsigned seed, ReferenceStrategy strategy) {
  const std::vector<Image> images = frames(12, seed);
  const std::vector<Field> expected = tracked_one_by_one(images, strategy);
  std::size_t next = 0;
  TrackStream stream(options(strategy), images[0], {}, [&](FrameResult result) {
    ASSERT_EQ(result.index, static_cast<std::int64_t>(next));
    EXPECT_EQ(result.error, "");
    expect_same(result.field, expected.at(next++));
  });
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const Image& image : images) stream.push(image);
    stream.finish();
    EXPECT_EQ(next, images.size());
    next = 0;
    stream.reset(images[0]);
  }
}

using StreamOnGpu = test::GpuTest;

TEST_F(StreamOnGpu, MeasuresWhatATrackerMeasures) {
  for (const auto strategy :
       {ReferenceStrategy::first, ReferenceStrategy::previous, ReferenceStrategy::automatic})
    check_stream(1, strategy);
}

TEST_F(StreamOnGpu, FieldsOutliveLaterFramesAndTheStream) {
  const std::vector<Image> images = frames(12, 5);
  const std::vector<Field> expected = tracked_one_by_one(images, ReferenceStrategy::first);
  std::vector<Field> kept;
  {
    TrackStream stream(options(ReferenceStrategy::first), images[0], {},
                       [&](FrameResult result) { kept.push_back(std::move(result.field)); });
    for (const Image& image : images) stream.push(image);
    stream.finish();
  }
  ASSERT_EQ(kept.size(), images.size());
  for (std::size_t k = 0; k < kept.size(); ++k) expect_same(kept[k], expected[k]);
}

TEST_F(StreamOnGpu, SeveralGpusAreComparedWithOne) {
  bench::TrackCase shape;
  shape.size = 900;  // enough points for two GPUs
  shape.options.device = "cuda:0,0";
  const bench::StreamTiming timing = bench::track_stream(shape, 5);
  EXPECT_EQ(timing.gpus, 2);
  EXPECT_GT(timing.frames_per_second_of_one, 0);
}

TEST_F(StreamOnGpu, TwoAtOnceDoNotDisturbEachOther) {
  std::thread other([] { check_stream(2, ReferenceStrategy::first); });
  check_stream(3, ReferenceStrategy::first);
  other.join();
}

TEST_F(StreamOnGpu, TakesFramesInGpuMemory) {
  const std::vector<Image> images = frames(5, 4);
  const std::vector<Field> expected = tracked_one_by_one(images, ReferenceStrategy::first);
  const kernels::Stream queue;
  kernels::DeviceBuffer buffer;  // one buffer for all frames
  constexpr int pitch = width + 19;
  TrackStream stream(options(), images[0]);
  for (std::size_t k = 0; k < images.size(); ++k) {
    kernels::upload(buffer.reserve(pitch * height), pitch, images[k].row<std::uint8_t>(0), width, width,
                    height, queue);
    queue.synchronize("upload");
    stream.push({buffer.data(), ScalarType::u8, width, height, pitch});
    kernels::fill(buffer.data(), 0, pitch * height, queue.handle());
    if (k + 1 < 4) continue;
    const auto result = stream.wait();
    ASSERT_TRUE(result);
    expect_same(result->field, expected[result->index]);
  }
  while (const auto result = stream.wait()) expect_same(result->field, expected[result->index]);
}

/// A copy of an image in the memory of the GPU, rows padded.
class GpuImage {
 public:
  explicit GpuImage(const Image& image) : image_(image.view()) {
    const std::size_t row = image.width() * size_of(image.type()), pitch = row + 24;
    const kernels::Stream queue;
    kernels::upload(memory_.reserve(pitch * image.height()), pitch, image_.data, image_.row_bytes, row,
                    image.height(), queue);
    queue.synchronize("upload");
    image_.data = memory_.data();
    image_.row_bytes = static_cast<std::ptrdiff_t>(pitch);
  }
  operator ImageView() const { return image_; }  // NOLINT

 private:
  ImageView image_;
  kernels::DeviceBuffer memory_;
};

/// Results with reference and frame both in host memory, and both in GPU memory.
std::array<FrameResult, 2> from_host_and_gpu(const TrackOptions& given, const Image& reference,
                                             const Image& frame) {
  const GpuImage gpu_reference(reference), gpu_frame(frame);
  Tracker host(given, reference), gpu(given, gpu_reference);
  return {host.track(frame), gpu.track(gpu_frame)};
}

TEST_F(StreamOnGpu, FiltersImagesInGpuMemory) {
  const std::vector<Image> images = frames(3, 7);
  TrackOptions given = options();
  for (const double sigma : {0.7, 2.0}) {
    given.prefilter = sigma;
    const auto [host, gpu] = from_host_and_gpu(given, images[0], images[2]);
    EXPECT_NEAR(gpu.noise / host.noise, 1, 1e-3);
    std::int64_t ok = 0, other = 0;
    double largest = 0;
    for (std::size_t k = 0; k < host.field.u.size(); ++k) {
      other += host.field.status[k] != gpu.field.status[k];
      if (host.field.status[k] != Status::ok || gpu.field.status[k] != Status::ok) continue;
      ++ok;
      largest = std::max(
          {largest, std::abs(host.field.u[k] - gpu.field.u[k]), std::abs(host.field.v[k] - gpu.field.v[k])});
    }
    EXPECT_GT(ok, 1000) << sigma;
    EXPECT_LT(other, 10) << sigma;
    EXPECT_LT(largest, 1e-3) << sigma;
  }
}

/// The image blurred by means over 5x5 px.
Image out_of_focus(const Image& image) {
  return test::converted<std::uint8_t>(
      test::image_of(image.width(), image.height(),
                     [&](int x, int y) {
                       double sum = 0;
                       for (int dy = -2; dy <= 2; ++dy)
                         for (int dx = -2; dx <= 2; ++dx)
                           sum += image.row<std::uint8_t>(std::clamp(
                               y + dy, 0, image.height() - 1))[std::clamp(x + dx, 0, image.width() - 1)];
                       return std::round(sum / 25);
                     }),
      ScalarType::u8);
}

TEST_F(StreamOnGpu, MatchesTheFocusOfImagesInGpuMemory) {
  const std::vector<Image> images = frames(3, 8);
  const Image blurred = out_of_focus(images[2]);
  const auto [host, gpu] = from_host_and_gpu(options(), images[0], blurred);
  expect_same(host.field, gpu.field);
  const auto [unmatched, same] = from_host_and_gpu(options(ReferenceStrategy::previous), images[0], blurred);
  std::int64_t different = 0;
  for (std::size_t k = 0; k < host.field.u.size(); ++k)
    different += unmatched.field.u[k] != host.field.u[k] && host.field.status[k] == Status::ok;
  EXPECT_GT(different, 1000) << "the focus was not matched: the comparison shows nothing";
}

/// Resident memory of this process, bytes.
double resident_bytes() {
  std::ifstream status("/proc/self/statm");
  double pages = 0, resident = 0;
  status >> pages >> resident;
  return 4096 * resident;
}

TEST_F(StreamOnGpu, MemoryStaysFlat) {
  const std::vector<Image> images = frames(8, 6, 128, 96);
  std::int64_t measured = 0;
  TrackStream stream(options(ReferenceStrategy::automatic), images[0], {},
                     [&](const FrameResult& result) { measured += result.error.empty(); });
  const auto push_many = [&](int count) {
    for (int k = 0; k < count; ++k) stream.push(images[k % 8]);
    stream.finish();
  };
  push_many(100);
  const double host = resident_bytes(), device = static_cast<double>(kernels::free_memory());
  push_many(10'000);
  EXPECT_EQ(measured, 10'100);
  EXPECT_LT(resident_bytes() - host, 4e6) << "400 bytes per frame would be 4 MB";
  EXPECT_LT(device - static_cast<double>(kernels::free_memory()), 4e6);
}

TEST_F(StreamOnGpu, GoesOnAfterCancellingAndBadFrames) {
  const std::vector<Image> images = frames(6, 5);
  const std::vector<Field> expected = tracked_one_by_one(images, ReferenceStrategy::first);
  TrackStream stream(options(), images[0], {}, {}, 6);
  for (const Image& image : images) stream.push(image);
  stream.cancel();
  while (stream.wait()) {
  }
  stream.push(Image({width, height + 1}, ScalarType::u8));
  stream.push(images[1]);
  EXPECT_NE(stream.wait()->error, "");
  const auto result = stream.wait();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error, "");
  EXPECT_EQ(result->index, 7);
  for (std::size_t i = 0; i < expected[1].u.size(); ++i)
    if (expected[1].status[i] == Status::ok && result->field.status[i] == Status::ok) {
      ASSERT_NEAR(result->field.u[i], expected[1].u[i], 1e-3);
    }
}

}  // namespace
}  // namespace dic

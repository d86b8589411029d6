#include <hdf5.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/kernels/spline.hpp>
#include <dic/track_files.hpp>
#include <dic/track_stream.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

// Tests a GPU that fails in the middle of a sequence. The process cannot use it afterwards, so every test
// runs in its own process.
namespace dic {
namespace {

namespace fs = std::filesystem;

constexpr int size = 160;

std::vector<Image> frames(int count) {
  const test::Speckle speckle(size, size, 2, 3, 40);
  std::vector<Image> out;
  for (int k = 0; k < count; ++k)
    out.push_back(test::converted<std::uint8_t>(
        test::image_of(size, size, [&](int x, int y) { return test::grey_of(speckle(x - 0.2 * k, y)); }),
        ScalarType::u8));
  return out;
}

TrackOptions options() {
  TrackOptions out;
  out.refine.subset = 21;
  out.step = 8;
  out.device = "cuda";
  return out;
}

/// Fields of images 1, 2, ... against the first.
std::vector<Field> tracked_one_by_one(const std::vector<Image>& images) {
  Tracker tracker(options(), images[0]);
  std::vector<Field> fields;
  for (std::size_t k = 1; k < images.size(); ++k) fields.push_back(tracker.track(images[k]).field);
  return fields;
}

void expect_same(std::span<const double> u, const std::vector<double>& status, const Field& expected) {
  ASSERT_EQ(u.size(), expected.u.size());
  for (std::size_t i = 0; i < u.size(); ++i) {
    ASSERT_EQ(status[i], static_cast<double>(expected.status[i])) << "node " << i;
    if (expected.status[i] == Status::ok) {
      ASSERT_EQ(u[i], expected.u[i]) << "node " << i;
    }
  }
}

/// A kernel writes to an invalid address: after that, every CUDA call of this process fails.
void lose_device() {
  const kernels::Stream queue;
  kernels::DeviceBuffer pixels;
  const ImageView image{pixels.reserve(size * size), ScalarType::u8, size, size, size};
  auto* const nowhere = reinterpret_cast<kernels::CoefficientPair*>(std::uintptr_t{1} << 52);
  kernels::launch_spline_coefficients(image, Interpolation::cubic, nowhere, queue.handle());
  EXPECT_THROW(queue.synchronize("A kernel that goes astray"), DeviceError);
}

void expect_useful_message(const DeviceError& error) {
  const std::string message = error.what();
  EXPECT_NE(message.find("cuda:0"), std::string::npos) << message;
  EXPECT_NE(message.find("--device cpu"), std::string::npos) << message;
}

/// Prints the failures so far to stderr: the parent process knows only that the child has failed.
void print_failures() {
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    std::fprintf(stderr, "line %d: %s\n", part.line_number(), part.message());
  }
}

/// Runs the test in a process that must end by itself within a minute.
void in_a_process_of_its_own(const std::function<void()>& test) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] {
    alarm(60);
    test();
    print_failures();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

void stream_that_loses_its_device() {
  const std::vector<Image> images = frames(8);
  const std::vector<Field> expected = tracked_one_by_one(images);
  TrackStream stream(options(), images[0], {}, {}, 8);
  for (int k = 1; k < 4; ++k) stream.push(images[k]);
  stream.finish();
  lose_device();
  try {
    for (int k = 4; k < 8; ++k) stream.push(images[k]);
    stream.finish();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DeviceError& error) {
    expect_useful_message(error);
  }
  for (int k = 0; k < 3; ++k) {
    const auto result = stream.wait();
    ASSERT_TRUE(result);
    std::vector<double> numbers;
    for (const Status s : result->field.status) numbers.push_back(static_cast<double>(s));
    expect_same(result->field.u, numbers, expected[k]);
  }
  EXPECT_THROW(stream.wait(), DeviceError);
  EXPECT_THROW(stream.push(images[1]), DeviceError);
  EXPECT_THROW(stream.reset(images[0]), DeviceError);
}

void tracker_that_loses_its_device() {
  const std::vector<Image> images = frames(2);
  TrackOptions previous = options();
  previous.reference_strategy = ReferenceStrategy::previous;
  Tracker tracker(previous, images[0]);
  tracker.track(images[1]);
  lose_device();
  EXPECT_THROW(tracker.track(images[1]), DeviceError);
}

/// The frames of a dataset [frame, y, x] in result.vtkhdf.
std::vector<std::vector<double>> saved(const fs::path& file, const std::string& array) {
  const hid_t h5 = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(h5, ("/VTKHDF/PointData/" + array).c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::array<hsize_t, 3> shape{};
  EXPECT_EQ(H5Sget_simple_extent_dims(space, shape.data(), nullptr), 3);
  const std::size_t nodes = shape[1] * shape[2];
  std::vector<double> all(shape[0] * nodes);
  EXPECT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
  H5Sclose(space);
  H5Dclose(dataset);
  EXPECT_GE(H5Fclose(h5), 0);
  std::vector<std::vector<double>> split;
  for (std::size_t k = 0; k < shape[0]; ++k)
    split.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(k * nodes),
                       all.begin() + static_cast<std::ptrdiff_t>((k + 1) * nodes));
  return split;
}

void expect_whole_result(const fs::path& folder, const std::vector<Field>& expected, std::size_t at_least) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    EXPECT_NE(entry.path().extension(), ".part");
  const auto u = saved(folder / "result.vtkhdf", "u"), status = saved(folder / "result.vtkhdf", "status");
  ASSERT_GE(u.size(), at_least);
  for (std::size_t k = 0; k < u.size(); ++k) expect_same(u[k], status[k], expected[k]);
  const auto run = nlohmann::json::parse(std::ifstream(folder / "run.json"));
  EXPECT_EQ(run["frames"].size(), u.size());
  EXPECT_TRUE(run["interrupted"]);
}

void run_that_loses_its_device() {
  const std::vector<Image> images = frames(40);
  const std::vector<Field> expected = tracked_one_by_one(images);
  const fs::path folder = fs::temp_directory_path() / ("dic_lost_device_" + std::to_string(getpid()));
  fs::create_directory(folder);
  TrackJob job;
  job.options = options();
  job.output = folder / "out";
  job.pictures = Pictures::none;
  for (std::size_t k = 0; k < images.size(); ++k) {
    job.frames.push_back(folder / ("frame_" + std::to_string(100 + k) + ".png"));
    write_image(job.frames.back(), images[k]);
  }
  constexpr int at_frame = 5;
  const auto lose = [&](const Progress& progress) {
    if (progress.stage == "write" && progress.frame == at_frame) lose_device();
  };
  try {
    track_files(job, lose);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DeviceError& error) {
    expect_useful_message(error);
  }
  expect_whole_result(job.output, expected, at_frame);
  fs::remove_all(folder);
}

using LostDevice = test::GpuTest;

TEST_F(LostDevice, EndsAStreamAfterWhatWasMeasured) { in_a_process_of_its_own(stream_that_loses_its_device); }
TEST_F(LostDevice, EndsATracker) { in_a_process_of_its_own(tracker_that_loses_its_device); }
TEST_F(LostDevice, LeavesTheFramesBeforeInWholeFiles) { in_a_process_of_its_own(run_that_loses_its_device); }

}  // namespace
}  // namespace dic

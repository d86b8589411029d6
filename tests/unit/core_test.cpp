#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/image.hpp>
#include <dic/visible_gpus.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/device_name.hpp"
#include "core/loaded_library.hpp"
#include "core/mask_counts.hpp"
#include "core/parallel.hpp"
#include "core/thread_team.hpp"
#include "core/uncached_copy.hpp"
#include "core/worker.hpp"

namespace dic {
namespace {

TEST(LoadedLibrary, FindsFunctionsAndSaysWhatIsMissing) {
  core::LoadedLibrary mathematics("libm.so.6");
  double (*cosine)(double) = nullptr;
  mathematics.find("cos", cosine);
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(mathematics.problem("The library", "install it", "update it"), "");

  double (*unknown)(double) = cosine;
  mathematics.find("no_such_function", unknown);
  mathematics.find("nor_this_one", unknown);
  EXPECT_EQ(unknown, nullptr);
  EXPECT_EQ(mathematics.problem("The library", "install it", "update it"),
            "libm.so.6 lacks no_such_function: update it.");

  core::LoadedLibrary missing("libno_such_library.so.0");
  missing.find("cos", cosine);
  EXPECT_EQ(cosine, nullptr);
  const std::string problem = missing.problem("The library", "install it", "update it");
  EXPECT_TRUE(problem.starts_with("The library was not found (libno_such_library.so.0")) << problem;
  EXPECT_TRUE(problem.ends_with("): install it.")) << problem;
}

TEST(MaskCounts, CountEveryRectangle) {
  constexpr int kWidth = 300, kHeight = 37;  // more than one block of columns
  std::mt19937 random(3);
  Image mask({kWidth, kHeight}, ScalarType::u8);
  for (int k = 0; k < kWidth * kHeight; ++k) mask.row<std::uint8_t>(0)[k] = random() % 3 ? 0 : random() % 256;
  for (const int threads : {1, 3}) {
    core::ThreadPool pool(threads);
    const core::MaskCounts counts(mask, pool);
    for (int n = 0; n < 500; ++n) {
      const auto between = [&](int low, int high) {
        return low + static_cast<int>(random() % (high - low + 1));
      };
      const int left = between(0, kWidth), top = between(0, kHeight), width = between(0, kWidth - left),
                height = between(0, kHeight - top);
      std::int64_t inside = 0;
      for (int y = top; y < top + height; ++y)
        for (int x = left; x < left + width; ++x) inside += mask.row<std::uint8_t>(y)[x] != 0;
      ASSERT_EQ(counts.inside(left, top, width, height), inside);
    }
  }
}

TEST(Image, RowsAreContiguousAndZero) {
  Image image({5, 3}, ScalarType::u16, 12);
  EXPECT_EQ(image.view().row_bytes, 10);
  EXPECT_EQ(image.view().bit_depth, 12);
  image.row<std::uint16_t>(2)[4] = 7;
  EXPECT_EQ(image.view().row<std::uint16_t>(2)[4], 7);
  EXPECT_EQ(image.view().row<std::uint16_t>(1)[4], 0);
  EXPECT_THROW(Image({-1, 3}, ScalarType::u8), UsageError);
}

TEST(ImageView, OfChecksPointerSizeRowsAndDepth) {
  std::vector<std::uint16_t> pixels(40);
  for (std::size_t k = 0; k < pixels.size(); ++k) pixels[k] = static_cast<std::uint16_t>(k);
  const ImageView padded = ImageView::of(pixels.data(), {5, 4}, 20, 12);
  EXPECT_EQ(padded.type, ScalarType::u16);
  EXPECT_EQ(padded.size(), (Size{.width = 5, .height = 4}));
  EXPECT_EQ(padded.bit_depth, 12);
  EXPECT_EQ(padded.row<std::uint16_t>(3)[4], 34);
  const ImageView upwards = ImageView::of(pixels.data() + 30, {10, 4}, -20);
  EXPECT_EQ(upwards.row<std::uint16_t>(3)[4], 4);
  const ImageView packed = ImageView::of(pixels, {8, 5});
  EXPECT_EQ(packed.row_bytes, 16);
  EXPECT_EQ(packed.row<std::uint16_t>(4)[7], 39);
  EXPECT_EQ(ImageView::of(pixels.data(), ScalarType::u8, {80, 1}, 80).row<std::uint8_t>(0)[2], 1);

  EXPECT_THROW(ImageView::of(pixels.data(), {11, 3}, 20), UsageError) << "rows overlap";
  EXPECT_THROW(ImageView::of(pixels.data() + 30, {11, 3}, -20), UsageError) << "rows overlap";
  EXPECT_THROW(ImageView::of(pixels.data(), {-1, 3}, 20), UsageError);
  EXPECT_THROW(ImageView::of(static_cast<const float*>(nullptr), {2, 2}, 8), UsageError);
  EXPECT_THROW(ImageView::of(pixels.data(), {5, 4}, 20, 17), UsageError);
  EXPECT_THROW(ImageView::of(std::array<float, 4>{}, {2, 2}, 8), UsageError) << "float has no bit depth";
  EXPECT_THROW(ImageView::of(pixels, {9, 5}), UsageError) << "too few elements";
  EXPECT_NO_THROW(ImageView::of(static_cast<const float*>(nullptr), {0, 0}, 0));
  EXPECT_NO_THROW(ImageView::of(pixels.data(), {40, 1}, 0)) << "one row needs no distance";
}

TEST(DeviceName, NamesTheCpuOneGpuSeveralOrAll) {
  using Ordinals = std::vector<int>;
  EXPECT_EQ(core::parse_device("cpu").backend, "cpu");
  EXPECT_EQ(core::parse_device("cuda").backend, "cuda");
  EXPECT_EQ(core::parse_device("cuda").ordinals, Ordinals{0});
  EXPECT_EQ(core::parse_device("cuda:12").ordinals, Ordinals{12});
  EXPECT_EQ(core::parse_device("cuda:0,2,1").ordinals, (Ordinals{0, 2, 1}));
  EXPECT_TRUE(core::parse_device("cuda:all").ordinals.empty());
  EXPECT_EQ(core::parse_device("opencl").backend, "opencl");
  EXPECT_EQ(core::parse_device("opencl:1").ordinals, Ordinals{1});
  for (const char* wrong :
       {"", "toaster", "cpu:0", "cuda:", "cuda:1x", "cuda:-1", "cuda:1,", "cuda:all,1", "opencl:", "openclx"})
    EXPECT_THROW(core::parse_device(wrong), UsageError) << wrong;
}

TEST(DeviceName, OpenClDoesNotTrack) {
  EXPECT_EQ(core::parse_tracking_device("cuda:1").backend, "cuda");
  for (const char* wrong : {"opencl", "opencl:1", "toaster"})
    EXPECT_THROW(core::parse_tracking_device(wrong), UsageError) << wrong;
}

TEST(Worker, DoesOneThingAfterTheOther) {
  std::vector<int> done;
  {
    core::Worker worker;
    for (int k = 0; k < 100; ++k) worker.submit([&done, k] { done.push_back(k); });
    EXPECT_THROW(worker.submit([] { throw UsageError("it failed"); }).get(), UsageError);
    EXPECT_EQ(std::ssize(done), 100);
    for (int k = 100; k < 200; ++k) worker.submit([&done, k] { done.push_back(k); });
  }
  EXPECT_EQ(std::ssize(done), 200) << "what was told is finished";
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

/// The values of all ranks are summed at every meeting, no matter how late they come.
TEST(ThreadTeam, AddsUpWhatTheRanksBring) {
  core::ThreadTeam team(4);
  for (int run = 0; run < 3; ++run) {
    std::array<std::int64_t, 4> wrong{};
    team.run([&](int rank) {
      for (int meeting = 0; meeting < 200; ++meeting) {
        if ((meeting + rank) % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        wrong[rank] += team.sum(meeting * (rank + 1)) != 10 * meeting;
      }
    });
    EXPECT_EQ(wrong, (std::array<std::int64_t, 4>{}));
  }
}

TEST(ThreadTeam, StopsWhereOneFailsAndGoesOnAfterwards) {
  core::ThreadTeam team(3);
  for (const int failing : {0, 1, 2}) {
    const auto fail = [&](int rank) {
      team.barrier();
      if (rank == failing) throw UsageError("it failed");
      for (int k = 0; k < 3; ++k) team.barrier();
    };
    EXPECT_THROW(team.run(fail), UsageError);
    std::atomic<int> done = 0;
    team.run([&](int) {
      team.barrier();
      ++done;
    });
    EXPECT_EQ(done, 3);
  }
}

TEST(UncachedCopy, FillsRowsUpToTheNextWithZeros) {
  constexpr std::size_t pitch = 256;
  constexpr std::int64_t rows = 3;
  alignas(64) std::array<std::byte, pitch * rows> to;
  for (const std::size_t row_bytes : {1, 15, 16, 63, 64, 65, 130, 255, 256}) {
    for (const std::ptrdiff_t stride : {std::ptrdiff_t{257}, std::ptrdiff_t{-301}}) {
      std::vector<std::byte> from(4 * 301);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
      const std::byte* first = from.data() + (stride > 0 ? 3 : 3 * 301);
      to.fill(std::byte{99});
      core::copy_rows_uncached(to.data(), pitch, first, stride, row_bytes, rows);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const std::size_t x = i % pitch;
        const auto y = static_cast<std::ptrdiff_t>(i / pitch);
        ASSERT_EQ(to[i], x < row_bytes ? first[y * stride + static_cast<std::ptrdiff_t>(x)] : std::byte{0})
            << x << ", " << y << " of " << row_bytes;
      }
    }
  }
}

/// CUDA_VISIBLE_DEVICES after hide_unused_gpus(); "-" where it is not set.
std::string visible_after(const char* before, const std::string& device) {
  if (before)
    setenv("CUDA_VISIBLE_DEVICES", before, 1);
  else
    unsetenv("CUDA_VISIBLE_DEVICES");
  hide_unused_gpus(device);
  const char* after = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string text = after ? after : "-";
  unsetenv("CUDA_VISIBLE_DEVICES");
  return text;
}

TEST(VisibleGpus, AreThoseUpToTheLastThatIsNeeded) {
  EXPECT_EQ(visible_after(nullptr, "cuda:0"), "0");
  EXPECT_EQ(visible_after(nullptr, "cuda:2"), "0,1,2");
  EXPECT_EQ(visible_after(nullptr, "cuda:3,1"), "0,1,2,3");
  EXPECT_EQ(visible_after("3,GPU-5a2f,1", "cuda:1"), "3,GPU-5a2f");
  EXPECT_EQ(visible_after("7", "cuda:2"), "7") << "what is missing is told where it is opened";
  EXPECT_EQ(visible_after("", "cuda:0"), "") << "the user hides all";
}

TEST(VisibleGpus, AreAllForOtherDevices) {
  for (const char* device : {"cuda:all", "cpu", "opencl", "opencl:1"}) {
    EXPECT_EQ(visible_after(nullptr, device), "-") << device;
    EXPECT_EQ(visible_after("1,0", device), "1,0") << device;
  }
  EXPECT_THROW(hide_unused_gpus("cuda:one"), UsageError);
}

}  // namespace
}  // namespace dic

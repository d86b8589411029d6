#include <gtest/gtest.h>

#include <atomic>
#include <dic/error.hpp>
#include <dic/image.hpp>
#include <stdexcept>
#include <vector>

#include "core/device_name.hpp"
#include "core/parallel.hpp"

namespace dic {
namespace {

TEST(ThreadPool, VisitsEveryIndexOnceWithAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (std::int64_t n : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> visits(n);
      pool.parallel_for(n, 3, [&](std::int64_t begin, std::int64_t end, int worker) {
        ASSERT_LT(worker, threads);
        for (std::int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& count : visits) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, ThrowsWhatABodyThrewAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](auto begin, auto, int) {
                                   if (begin == 40) throw FileError("x");
                                 }),
               FileError);
  std::atomic<int> visited = 0;
  pool.parallel_for(10, 1, [&](auto, auto, int) { ++visited; });
  EXPECT_EQ(visited, 10);
}

TEST(Image, RowsAreContiguousAndZero) {
  Image image(5, 3, ScalarType::u16, 12);
  EXPECT_EQ(image.view().row_bytes, 10);
  EXPECT_EQ(image.view().bit_depth, 12);
  image.row<std::uint16_t>(2)[4] = 7;
  EXPECT_EQ(image.view().row<std::uint16_t>(2)[4], 7);
  EXPECT_EQ(image.view().row<std::uint16_t>(1)[4], 0);
  EXPECT_THROW(Image(-1, 3, ScalarType::u8), UsageError);
}

TEST(DeviceName, NamesTheCpuOneGpuSeveralOrAll) {
  using Ordinals = std::vector<int>;
  EXPECT_EQ(parse_device("cpu").backend, "cpu");
  EXPECT_EQ(parse_device("cuda").backend, "cuda");
  EXPECT_EQ(parse_device("cuda").ordinals, Ordinals{0});
  EXPECT_EQ(parse_device("cuda:12").ordinals, Ordinals{12});
  EXPECT_EQ(parse_device("cuda:0,2,1").ordinals, (Ordinals{0, 2, 1}));
  EXPECT_TRUE(parse_device("cuda:all").ordinals.empty());
  for (const char* wrong : {"", "toaster", "cpu:0", "cuda:", "cuda:1x", "cuda:-1", "cuda:1,", "cuda:all,1"})
    EXPECT_THROW(parse_device(wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace dic

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/image.hpp>
#include <dic/memory.hpp>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "core/make_room.hpp"
#include "core/parallel.hpp"

namespace {

using namespace dic;
namespace fs = std::filesystem;

constexpr std::size_t kMega = std::size_t{1} << 20;

std::uint32_t expected(std::size_t k) { return static_cast<std::uint32_t>(k * 2654435761u); }

void fill(PixelMemory& memory) {
  auto* values = reinterpret_cast<std::uint32_t*>(memory.data());
  for (std::size_t k = 0; k < memory.size() / 4; ++k) values[k] = expected(k);
}

/// Reads one megabyte after another, and makes room before each as the library's loops do.
bool holds(const PixelMemory& memory) {
  const auto* values = reinterpret_cast<const std::uint32_t*>(memory.data());
  for (std::size_t k = 0; k < memory.size() / 4; ++k) {
    if (k % (kMega / 4) == 0) core::make_room_in_memory();
    if (values[k] != expected(k)) return false;
  }
  return true;
}

fs::path folder() {
  const fs::path path = fs::path(testing::TempDir()) / "memory_test";
  fs::create_directories(path);
  return path;
}

TEST(PixelMemory, BeginsWithZerosIsCopiedAndMoved) {
  for (const std::size_t limit : {std::size_t{0}, 4096 * kMega}) {
    const MemoryLimit limited(limit, folder());
    PixelMemory first(5 * kMega);
    EXPECT_TRUE(std::all_of(first.data(), first.data() + first.size(),
                            [](std::byte b) { return b == std::byte{0}; }));
    fill(first);
    PixelMemory copy(first);
    EXPECT_NE(copy.data(), first.data());
    EXPECT_TRUE(holds(copy));
    const std::byte* place = copy.data();
    PixelMemory moved(std::move(copy));
    EXPECT_EQ(moved.data(), place);
    first = std::move(moved);
    EXPECT_EQ(first.data(), place);
    EXPECT_EQ(PixelMemory().data(), nullptr);
  }
}

TEST(MemoryLimit, KeepsWhatIsResident) {
  constexpr std::size_t kAllowed = 48 * kMega, kBlock = 32 * kMega;
  const std::size_t before = resident_bytes();
  const MemoryLimit limit(before + kAllowed, folder());
  std::vector<PixelMemory> blocks;
  for (int k = 0; k < 8; ++k) fill(blocks.emplace_back(kBlock));
  std::size_t most = 0;
  for (const PixelMemory& block : blocks) {
    EXPECT_TRUE(holds(block));
    most = std::max(most, resident_bytes());
  }
  EXPECT_LT(most, before + kAllowed);
  EXPECT_TRUE(fs::is_empty(folder()));  // because the files have no names
}

TEST(MemoryLimit, ThreadsWaitForIt) {
  constexpr std::size_t kAllowed = 96 * kMega;
  const std::size_t before = resident_bytes();
  const MemoryLimit limit(before + kAllowed, folder());
  PixelMemory block(1024 * kMega);
  core::ThreadPool pool(16);
  std::atomic<std::size_t> most = 0;
  pool.parallel_for(static_cast<std::int64_t>(block.size()), kMega,
                    [&](std::int64_t begin, std::int64_t end, int) {
                      std::fill(block.data() + begin, block.data() + end, std::byte{7});
                      const std::size_t now = resident_bytes();
                      for (std::size_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                      }
                    });
  EXPECT_LT(most, before + kAllowed);
  EXPECT_TRUE(
      std::all_of(block.data(), block.data() + block.size(), [](std::byte b) { return b == std::byte{7}; }));
}

TEST(MemoryLimit, TheSmallestCounts) {
  const std::size_t before = resident_bytes();
  const MemoryLimit large(before + 4096 * kMega, folder());
  PixelMemory block(128 * kMega);
  fill(block);
  EXPECT_GT(resident_bytes(), before + 100 * kMega);
  const MemoryLimit small(before + 32 * kMega, folder());
  EXPECT_TRUE(holds(block));
  EXPECT_LT(resident_bytes(), before + 40 * kMega);
}

TEST(MemoryLimit, LastsAsLongAsItsObject) {
  PixelMemory kept;
  {
    const MemoryLimit limit(4096 * kMega, folder());
    kept = PixelMemory(3 * kMega);
    fill(kept);
  }
  EXPECT_TRUE(holds(kept));
  kept = PixelMemory();
  Image image({2048, 1024}, ScalarType::u8);  // allocated on the heap again
  EXPECT_EQ(image.row<std::uint8_t>(1023)[2047], 0);
}

}  // namespace

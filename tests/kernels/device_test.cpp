#include <algorithm>
#include <cstring>
#include <dic/error.hpp>
#include <dic/kernels/device.hpp>
#include <string>
#include <vector>

#include "support/gpu_test.hpp"

// Tests streams, events, and buffers that keep their memory.
namespace dic::test {
namespace {

using kernels::DeviceBuffer;
using kernels::Event;
using kernels::PinnedBuffer;
using kernels::Stream;

using Device = GpuTest;

/// About 50 ms of work, after which every byte of the memory has its final value.
constexpr std::size_t much = std::size_t{1} << 30;
constexpr int last_value = 200;
void queue_work(DeviceBuffer& memory, const Stream& stream) {
  for (int value = 1; value <= last_value; ++value)
    kernels::fill(memory.reserve(much), value, much, stream.handle());
}

TEST_F(Device, AnEventIsReachedAfterTheWorkBeforeIt) {
  DeviceBuffer memory;
  const Stream stream;
  Event event;
  EXPECT_TRUE(event.reached());
  queue_work(memory, stream);
  event.record(stream);
  EXPECT_FALSE(event.reached());
  event.synchronize("filling");
  EXPECT_TRUE(event.reached());
}

TEST_F(Device, AnEventHoldsAnotherStream) {
  DeviceBuffer memory;
  PinnedBuffer copy;
  const Stream busy, waiting;
  Event event;
  queue_work(memory, busy);
  event.record(busy);
  waiting.wait(event);
  kernels::download(copy.reserve(1), static_cast<std::byte*>(memory.data()) + much - 1, 1, waiting);
  waiting.synchronize("downloading");
  EXPECT_EQ(*static_cast<std::uint8_t*>(copy.data()), last_value);
}

TEST_F(Device, PinnedMemoryIsCopiedWhileTheHostGoesOn) {
  DeviceBuffer memory, target;
  PinnedBuffer from, to;
  const Stream stream;
  for (const std::size_t count : {100'000, 3'000'001}) {  // memory of a few pages, and of large pages
    auto* values = from.reserve<int>(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i);
    void* between = target.reserve<int>(count);
    void* back = to.reserve<int>(count);
    Event event;
    queue_work(memory, stream);
    kernels::upload(between, values, count * sizeof(int), stream);
    kernels::download(back, between, count * sizeof(int), stream);
    event.record(stream);
    EXPECT_FALSE(event.reached()) << "the copies waited for their stream";
    stream.synchronize("copying");
    EXPECT_EQ(std::memcmp(values, back, count * sizeof(int)), 0);
  }
}

TEST_F(Device, MemoryThatNoOneHasIsAnErrorThatSaysWhatHelps) {
  try {
    DeviceBuffer().reserve(std::size_t{1} << 50);
    ADD_FAILURE() << "there was memory enough";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("out of memory; fewer points"), std::string::npos)
        << error.what();
  }
  DeviceBuffer().reserve(1 << 20);
}

template <typename Buffer>
void check_growth() {
  Buffer buffer;
  void* first = buffer.reserve(1000);
  EXPECT_EQ(buffer.reserve(10), first) << "kept where it suffices";
  EXPECT_EQ(buffer.size(), 1000u);
  buffer.reserve(1 << 20);
  EXPECT_EQ(buffer.size(), 1u << 20);
  Buffer other = std::move(buffer);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(other.size(), 1u << 20);
}
TEST_F(Device, MemoryGrowsAndIsKept) {
  check_growth<DeviceBuffer>();
  check_growth<PinnedBuffer>();
}

}  // namespace
}  // namespace dic::test

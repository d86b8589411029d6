#include <algorithm>
#include <dic/kernels/ceilings.hpp>

#include "common/launch.cuh"

namespace dic::kernels {
namespace {

constexpr int block_threads = 256;
constexpr int blocks_per_multiprocessor = 4;
constexpr int rounds = 4096;
// Independent chains hide the latency of the arithmetic units: 4 of them per warp scheduler are enough.
constexpr int chains = 8;

// Work of a thread. Chains begin with different numbers: the compiler would compute equal chains only once.
struct F32 {
  static constexpr double operations_per_thread = 2;
  float value[chains];
  __device__ void begin(int k) { value[k] = static_cast<float>(k); }
  __device__ void step(int k, int seed) { value[k] = fmaf(value[k], 0.999f, static_cast<float>(seed)); }
  __device__ int result(int k) const { return __float_as_int(value[k]); }
};

struct Dp4a {
  static constexpr double operations_per_thread = 8;
  int value[chains];
  __device__ void begin(int k) { value[k] = k; }
  __device__ void step(int k, int seed) { value[k] = __dp4a(seed, value[k], value[k]); }
  __device__ int result(int k) const { return value[k]; }
};

/// Multiplication of 16 x 32 by 32 x 8 bytes by a warp.
struct MmaU8 {
  static constexpr double operations_per_thread = 2.0 * 16 * 8 * 32 / warp_size;
  int value[chains][4] = {};
  __device__ void begin(int k) { value[k][0] = k; }
  __device__ void step(int k, int seed) {
    int* c = value[k];
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(seed));
  }
  __device__ int result(int k) const { return value[k][0] + value[k][1] + value[k][2] + value[k][3]; }
};

/// Multiplication of 16 x 16 by 16 x 8 halves by a warp, with float sums.
struct MmaF16 {
  static constexpr double operations_per_thread = 2.0 * 16 * 8 * 16 / warp_size;
  float value[chains][4] = {};
  __device__ void begin(int k) { value[k][0] = static_cast<float>(k); }
  __device__ void step(int k, int seed) {
    float* c = value[k];
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(seed));
  }
  __device__ int result(int k) const {
    return __float_as_int(value[k][0] + value[k][1] + value[k][2] + value[k][3]);
  }
};

template <typename Work>
__global__ void __launch_bounds__(block_threads) multiply_add(int seed, int* sink) {
  Work work;
#pragma unroll
  for (int k = 0; k < chains; ++k) work.begin(k);
#pragma unroll 16
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int k = 0; k < chains; ++k) work.step(k, seed);
  int total = 0;
#pragma unroll
  for (int k = 0; k < chains; ++k) total ^= work.result(k);
  if (total == 1) *sink = total;  // otherwise the compiler would remove everything
}

/// Best rate of `queue`, which queues `amount` of work.
template <typename Queue>
double best_rate(const Stream& stream, int repeats, double amount, const Queue& queue) {
  Stopwatch watch;
  double best = 0;
  queue();  // warm-up
  for (int repeat = 0; repeat < repeats; ++repeat) {
    watch.start(stream);
    queue();
    watch.stop(stream);
    stream.synchronize("Measuring a ceiling");
    best = std::max(best, amount / watch.seconds());
  }
  return best;
}

template <typename Work>
double operations_per_second(const Device& device, const Stream& stream, int repeats) {
  const int blocks = device.multiprocessors * blocks_per_multiprocessor;
  DeviceBuffer sink;
  auto* out = static_cast<int*>(sink.reserve(sizeof(int)));
  const double operations = Work::operations_per_thread * chains * rounds * block_threads * blocks;
  return best_rate(stream, repeats, operations, [&] {
    multiply_add<Work><<<blocks, block_threads, 0, stream.handle()>>>(0x3c003c00, out);
    check_launch("Measuring a ceiling");
  });
}

double bytes_per_second(const Stream& stream, int repeats) {
  constexpr std::size_t bytes = std::size_t{1} << 29;  // larger than every cache
  DeviceBuffer from, to;
  from.reserve(bytes);
  to.reserve(bytes);
  fill(from.data(), 1, bytes, stream.handle());
  return best_rate(stream, repeats, 2.0 * bytes, [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream.handle()),
          "Copying within the device");
  });
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const Device& device, int repeats) {
  const Stream stream;
  return {{"f32 multiply-adds", false, operations_per_second<F32>(device, stream, repeats)},
          {"dp4a multiply-adds", false, operations_per_second<Dp4a>(device, stream, repeats)},
          {"f16 tensor multiply-adds", false, operations_per_second<MmaF16>(device, stream, repeats)},
          {"u8 tensor multiply-adds", false, operations_per_second<MmaU8>(device, stream, repeats)},
          {"memory", true, bytes_per_second(stream, repeats)}};
}

}  // namespace dic::kernels

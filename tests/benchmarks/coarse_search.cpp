#include <random>
#include <vector>

#include "benchmarks/device_benchmark.hpp"
#include "core/parallel.hpp"
#include "track/cpu/host_coarse_search.hpp"
#include "track/cuda/device_coarse_search.hpp"

// The coarse-to-fine search of a pair of images of 4096 x 4096, on the GPU and on the CPU.
namespace {

using namespace dic;
using track::CoarseField;

/// Blobs of 24 px: contrast that reduced images keep. Shifted by (61, -38) in the current image.
Image image(int size, bool moved) {
  constexpr int cell = 12;
  std::mt19937 random(1);
  const int cells = size / cell + 20;
  std::vector<float> grey(static_cast<std::size_t>(cells) * cells);
  for (float& value : grey) value = static_cast<float>(random() % 256);
  Image out({size, size}, ScalarType::u8);
  const int dx = moved ? -61 : 0, dy = moved ? 38 : 0;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const int a = x + dx + 10 * cell, b = y + dy + 10 * cell;
      const float* at = grey.data() + static_cast<std::size_t>(b / cell) * cells + a / cell;
      const float s = static_cast<float>(a % cell) / cell, t = static_cast<float>(b % cell) / cell;
      out.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>((1 - t) * ((1 - s) * at[0] + s * at[1]) +
                                                              t * ((1 - s) * at[cells] + s * at[cells + 1]));
    }
  return out;
}

ImageView uploaded(const Image& image, kernels::DeviceBuffer& memory, const kernels::Stream& stream) {
  ImageView view = image;
  const std::size_t bytes = view.row_bytes * view.height;
  kernels::upload(memory.reserve(bytes), view.data, bytes, stream);
  view.data = memory.data();
  return view;
}

using bench_gpu::Measurements;

constexpr int size = 4096;

struct SearchOnGpu {
  Image reference = image(size, false), current = image(size, true);
  kernels::Stream stream;
  kernels::DeviceBuffer first, second;
  ImageView a = uploaded(reference, first, stream), b = uploaded(current, second, stream);
  track::cuda::SubsetSearch subsets{kernels::find_devices().front()};
  track::cuda::CoarseMemory memory, fresh_memory;
  track::cuda::DeviceCoarseSearch search{subsets};
  core::ThreadPool pool;
  track::cuda::CoarseReference prepared{a, {}, pool, memory, stream};
  track::cuda::DevicePyramid pyramid;
};

/// Each call waits for its result by itself.
Measurements on_gpu() {
  const auto s = std::make_shared<SearchOnGpu>();
  Measurements out;
  out.push_back({"GPU, with the reference's part",
                 nullptr,
                 [=] {
                   track::cuda::CoarseReference fresh(s->a, {}, s->pool, s->fresh_memory, s->stream);
                   benchmark::DoNotOptimize(s->search.run(fresh, s->b, s->stream));
                 },
                 0,
                 {},
                 {}});
  out.push_back({"GPU",
                 nullptr,
                 [=] { benchmark::DoNotOptimize(s->search.run(s->prepared, s->b, s->stream)); },
                 0,
                 {},
                 {}});
  out.push_back({"GPU, pyramid alone",
                 &s->stream,
                 [=] { s->pyramid.build(s->b, s->prepared.search(), s->stream); },
                 0,
                 {},
                 {}});
  return out;
}

struct SearchOnCpu {
  Image reference = image(size, false), current = image(size, true);
  Correlator correlator{"cpu"};
  core::ThreadPool pool;
  track::HostCoarseSearch search{reference, {}, pool};
};

Measurements on_cpu() {
  const auto s = std::make_shared<SearchOnCpu>();
  return {{"CPU",
           nullptr,
           [=] { benchmark::DoNotOptimize(s->search.run(s->correlator, s->current)); },
           0,
           {},
           {}}};
}

void add_all() {
  bench_gpu::add(on_cpu);
  bench_gpu::add(on_gpu);
}

}  // namespace

int main(int argc, char** argv) { return bench_gpu::run_all(argc, argv, add_all); }

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <random>
#include <vector>

#include "core/parallel.hpp"
#include "track/cpu/host_coarse_search.hpp"
#include "track/cuda/device_coarse_search.hpp"

// Times the coarse-to-fine search of a pair of images on the GPU and on the CPU.
//
//     search_time [SIZE]      image px, 4096
namespace {

using namespace dic;
using track::CoarseField;

template <typename Run>
double median_seconds(const Run& run) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

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

void report(const char* what, double seconds, const CoarseField& field) {
  std::printf("%-32s %8.2f ms   confidence %.3f, %d x %d nodes, centre %.2f %.2f\n", what, 1e3 * seconds,
              field.confidence, field.nx, field.ny, field.at(300, 300).u, field.at(300, 300).v);
  std::fflush(stdout);
}

void time_gpu(const Image& reference, const Image& current) {
  const kernels::Stream stream;
  kernels::DeviceBuffer first, second;
  const ImageView a = uploaded(reference, first, stream), b = uploaded(current, second, stream);
  stream.synchronize("upload");
  track::cuda::SubsetSearch subsets(kernels::find_devices().front());
  track::cuda::CoarseMemory memory;
  track::cuda::DeviceCoarseSearch search(subsets);
  CoarseField field;
  const double with_reference = median_seconds([&] {
    track::cuda::CoarseReference side(a, {}, memory, stream);
    field = search.run(side, b, stream);
  });
  report("GPU, with the reference's part", with_reference, field);
  track::cuda::CoarseReference side(a, {}, memory, stream);
  field = search.run(side, b, stream);
  report("GPU", median_seconds([&] { field = search.run(side, b, stream); }), field);
  track::cuda::DevicePyramid pyramid;
  report("GPU, pyramid alone", median_seconds([&] {
           pyramid.build(b, side.search(), stream);
           stream.synchronize("pyramid");
         }),
         field);
}

void time_cpu(const Image& reference, const Image& current) {
  Correlator correlator("cpu");
  track::HostCoarseSearch search(reference, {});
  CoarseField field;
  report("CPU", median_seconds([&] { field = search.run(correlator, current); }), field);
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 4096;
  const Image reference = image(size, false), current = image(size, true);
  try {
    time_cpu(reference, current);
    std::printf("%s\n", kernels::find_device(0).model.c_str());
    time_gpu(reference, current);
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}

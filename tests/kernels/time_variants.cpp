#include <algorithm>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/kernels/ncc.hpp>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/device_timing.hpp"

// Times every registered variant on the device, kernels only: medians over repeats, warm, data in device
// memory.
//
//     kernels_time [TEXT...]    only the rows that contain every TEXT
namespace {

using namespace dic;
using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::Stream;
using test::median_seconds;

constexpr int image_size = 4096;

struct Shape {
  std::string name;
  Pairing pairing;
  ScalarType type;
  int bit_depth;
  int references, windows;
  int ref_size, window_size;
  Shifts shifts;
  int step = 0;  ///< of a grid of windows, each around its reference; 0: random positions
};

Shape valid(int points, int h, int r, ScalarType type = ScalarType::u8, int bit_depth = 0) {
  return {"valid " + (bit_depth > 0 ? std::to_string(bit_depth) + " bit" : std::string(to_string(type))) +
              " " + std::to_string(h) + "," + std::to_string(r) + " x " + std::to_string(points),
          Pairing::one_to_one,
          type,
          bit_depth,
          points,
          points,
          h,
          h + 2 * r,
          {0, 2 * r, 0, 2 * r}};
}
/// The same with references on a grid, each in the middle of its window.
Shape on_grid(Shape shape, int step) {
  shape.name += " step " + std::to_string(step);
  shape.step = step;
  return shape;
}
/// `count` references of h x h in one image.
Shape templates(int count, int h) {
  return {"valid u8 " + std::to_string(h) + " in 4096 x " + std::to_string(count),
          Pairing::n_to_m,
          ScalarType::u8,
          0,
          count,
          1,
          h,
          image_size,
          Shifts::valid({h, h}, {image_size, image_size})};
}

struct Batch {
  Pairing pairing;
  int references, windows;
};

Shape full(int h, const Batch& batch, ScalarType type = ScalarType::f32) {
  return {"full " + std::string(to_string(type)) + " " + std::to_string(h) + " " +
              std::to_string(batch.references) + "x" + std::to_string(batch.windows),
          batch.pairing,
          type,
          0,
          batch.references,
          batch.windows,
          h,
          h,
          Shifts::full({h, h}, {h, h})};
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  struct Kind {
    ScalarType type;
    int bit_depth;
  };
  for (const auto [type, bit_depth] : {Kind{ScalarType::u8, 0}, Kind{ScalarType::u16, 0},
                                       Kind{ScalarType::u16, 12}, Kind{ScalarType::f32, 0}}) {
    for (const auto& [h, r] : {std::pair{31, 15}, {32, 8}, {32, 16}, {64, 16}, {61, 31}, {64, 32}})
      all.push_back(valid(100000, h, r, type, bit_depth));
  }
  for (const auto& [h, r] : {std::pair{21, 2}, {31, 2}, {33, 2}, {51, 2}, {31, 3}, {31, 4}}) {
    all.push_back(valid(100000, h, r));
    all.push_back(on_grid(valid(100000, h, r), 5));
  }
  for (const auto& [points, h, r] : {std::tuple{100000, 21, 2},
                                     {100000, 31, 2},
                                     {100000, 31, 4},
                                     {1, 31, 15},
                                     {10, 31, 15},
                                     {100, 31, 15},
                                     {1000, 31, 15},
                                     {1, 61, 31},
                                     {100, 61, 31}})
    all.push_back(valid(points, h, r, ScalarType::f32));
  for (const int count : {1, 100}) all.push_back(templates(count, 64));
  all.push_back(valid(1, 64, 2016, ScalarType::f32));
  constexpr Batch batches[] = {{Pairing::one_to_one, 1, 1},
                               {Pairing::one_to_many, 1, 64},
                               {Pairing::one_to_many, 1, 1024},
                               {Pairing::n_to_mn, 100, 1000},
                               {Pairing::n_to_m, 50, 50}};
  for (const int h : {16, 24, 32, 48, 64, 128, 256})
    for (const Batch& batch : batches) all.push_back(full(h, batch));
  for (const int h : {16, 32, 64})
    for (const Batch& batch : batches) all.push_back(full(h, batch, ScalarType::u8));
  return all;
}

/// A random image in device memory.
class TestImage {
 public:
  explicit TestImage(const Stream& stream, ScalarType type, int bit_depth = 0) {
    std::mt19937 random(1);
    const int unused_bits = bit_depth == 0 ? 0 : 16 - bit_depth;
    if (type == ScalarType::u8)
      upload<std::uint8_t>(stream, [&] { return static_cast<std::uint8_t>(random()); });
    else if (type == ScalarType::u16)
      upload<std::uint16_t>(stream,
                            [&] { return static_cast<std::uint16_t>((random() & 0xffff) >> unused_bits); });
    else
      upload<float>(stream, [&] { return static_cast<float>(random() % 1000) / 1000.0F; });
  }
  const kernels::DeviceImage* description() const {
    return static_cast<const kernels::DeviceImage*>(description_.data());
  }
  const kernels::DeviceImage& on_host() const { return on_host_; }

 private:
  template <typename T, typename Random>
  void upload(const Stream& stream, Random&& random) {
    std::vector<T> pixels(std::size_t{image_size} * image_size);
    std::ranges::generate(pixels, random);
    const std::size_t row = image_size * sizeof(T);
    kernels::upload(pixels_.reserve(row * image_size), pixels.data(), row * image_size, stream);
    on_host_ = {pixels_.data(), static_cast<std::ptrdiff_t>(row), image_size, image_size};
    kernels::upload(description_.reserve(sizeof(on_host_)), &on_host_, sizeof(on_host_), stream);
    stream.synchronize("upload");
  }

  DeviceBuffer pixels_, description_;
  kernels::DeviceImage on_host_;
};

/// One of every kind of element.
struct Images {
  TestImage bytes, words, of_12_bit, floats;

  explicit Images(const Stream& stream)
      : bytes(stream, ScalarType::u8),
        words(stream, ScalarType::u16),
        of_12_bit(stream, ScalarType::u16, 12),
        floats(stream, ScalarType::f32) {}
  const TestImage& of(const Shape& shape) const {
    if (shape.type == ScalarType::f32) return floats;
    return shape.type == ScalarType::u8 ? bytes : shape.bit_depth == 0 ? words : of_12_bit;
  }
};

std::vector<PatchPosition> random_positions(int count, int size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> place(0, image_size - size);
  std::vector<PatchPosition> positions;
  for (int k = 0; k < count; ++k) {
    const int x = place(random);
    positions.push_back({0, x, place(random)});
  }
  return positions;
}
/// Row by row, `margin` pixels from the border.
std::vector<PatchPosition> grid_positions(int count, int step, int margin, int size) {
  const int columns = (image_size - size - 2 * margin) / step + 1;
  std::vector<PatchPosition> positions;
  for (int k = 0; k < count; ++k)
    positions.push_back({0, margin + k % columns * step, margin + k / columns * step});
  return positions;
}

/// Positions in an image.
class Side {
 public:
  Side(const TestImage& image, const std::vector<PatchPosition>& positions, int size, const Stream& stream)
      : image_(image), count_(static_cast<int>(positions.size())), size_(size) {
    const std::size_t bytes_of_positions = positions.size() * sizeof(PatchPosition);
    kernels::upload(positions_.reserve(bytes_of_positions), positions.data(), bytes_of_positions, stream);
    stream.synchronize("upload");
  }
  kernels::DevicePatches matrices() const {
    return {image_.description(),
            static_cast<const PatchPosition*>(positions_.data()),
            count_,
            size_,
            size_,
            {1, image_size, image_size},
            image_.on_host()};
  }

 private:
  const TestImage& image_;
  int count_, size_;
  DeviceBuffer positions_;
};

void time_shape(const Shape& shape, const TestImage& image, std::span<char*> wanted) {
  const Stream stream;
  NccJob job;
  job.pairing = shape.pairing;
  job.type = shape.type;
  job.bit_depth = shape.bit_depth;
  job.sums = shape.type == ScalarType::f32
                 ? SurfaceType::f32
                 : kernels::sums_for_scores(shape.type, shape.ref_size, shape.ref_size);
  const auto positions = [&](int count, int size, unsigned seed) {
    const int margin = (shape.window_size - size) / 2;
    return shape.step > 0 ? grid_positions(count, shape.step, margin, size)
                          : random_positions(count, size, seed);
  };
  const Side reference(image, positions(shape.references, shape.ref_size, 1), shape.ref_size, stream);
  const Side search(image, positions(shape.windows, shape.window_size, 2), shape.window_size, stream);
  job.reference = reference.matrices();
  job.search = search.matrices();
  job.shifts = shape.shifts;
  job.pairs =
      shape.pairing == Pairing::n_to_m ? std::int64_t{shape.references} * shape.windows : shape.windows;

  const auto report = [&](std::string_view name, auto&& launch) {
    const std::string row = shape.name + "  " + std::string(name);
    const auto holds = [&](const char* text) { return row.find(text) != std::string::npos; };
    if (!std::ranges::all_of(wanted, holds)) return;
    std::printf("%-66s %10.4f ms\n", row.c_str(), 1e3 * median_seconds(stream, launch));
    std::fflush(stdout);
  };
  DeviceBuffer sums, scores, moments, peaks, workspace;
  kernels::Workspace kept;
  sums.reserve(job.outputs() * size_of(job.sums));
  for (const kernels::NccVariant& variant : kernels::ncc_variants())
    if (variant.computes_sums() && variant.unavailable_reason().empty() && variant.unsupported_reason(job).empty())
      report(variant.name, [&] { kernels::launch_ncc(variant, job, sums.data(), kept, stream.handle()); });
  if (shape.ref_size == shape.window_size) return;  // scores want shifts that are defined
  job.sums = kernels::sums_for_scores(job.type, shape.ref_size, shape.ref_size);
  sums.reserve(job.outputs() * size_of(job.sums));

  auto* surfaces = static_cast<float*>(scores.reserve(job.outputs() * sizeof(float)));
  auto* found = static_cast<Peak*>(peaks.reserve(job.pairs * sizeof(Peak)));
  moments.reserve(job.reference.count * kernels::moments_bytes);
  workspace.reserve(kernels::peaks_workspace_bytes(job));
  report("moments of the references",
         [&] { kernels::launch_reference_moments(job, moments.data(), stream.handle()); });
  report("scores from sums", [&] {
    kernels::launch_scores(job, Criterion::zncc, kernels::ScoreKind::score, sums.data(), moments.data(),
                           surfaces, stream.handle());
  });
  report("peaks from scores", [&] {
    kernels::launch_peaks(job, Criterion::zncc, surfaces, found, workspace.data(), stream.handle());
  });
  for (const kernels::NccVariant& variant : kernels::ncc_variants()) {
    if (!variant.score_fusion() || !variant.unsupported_reason(job).empty()) continue;
    if (variant.can_fuse(job, kernels::FusedOutput::scores))
      report(std::string(variant.name) + ", fused scores", [&] {
        variant.score_fusion()->launch_scores(job, Criterion::zncc, kernels::ScoreKind::score, surfaces, kept,
                                     stream.handle());
      });
    if (variant.can_fuse(job, kernels::FusedOutput::peaks))
      report(std::string(variant.name) + ", fused peaks",
             [&] { variant.score_fusion()->launch_peaks(job, Criterion::zncc, found, kept, stream.handle()); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const kernels::Device device = kernels::find_device(0);
    std::printf("%s\n", device.model.c_str());
    const Stream stream;
    const Images images(stream);
    for (const Shape& shape : shapes()) time_shape(shape, images.of(shape), {argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

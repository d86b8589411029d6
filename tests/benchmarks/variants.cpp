#include <algorithm>
#include <dic/kernels/ncc.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "benchmarks/device_benchmark.hpp"

// Every registered variant, kernels only, data in device memory.
namespace {

using namespace dic;
using kernels::DeviceBuffer;
using kernels::NccJob;
using kernels::Stream;

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

/// A shape with its data and working memory on the GPU.
struct ShapeOnGpu {
  Stream stream;
  TestImage image;
  Side reference, search;
  NccJob job;
  DeviceBuffer sums, scores, moments, peaks, peak_workspace;
  kernels::Workspace workspace;

  explicit ShapeOnGpu(const Shape& shape)
      : image(stream, shape.type, shape.bit_depth),
        reference(image, positions(shape, shape.references, shape.ref_size, 1), shape.ref_size, stream),
        search(image, positions(shape, shape.windows, shape.window_size, 2), shape.window_size, stream) {
    job.pairing = shape.pairing;
    job.type = shape.type;
    job.bit_depth = shape.bit_depth;
    job.sums = shape.type == ScalarType::f32
                   ? SurfaceType::f32
                   : kernels::sums_for_scores(shape.type, shape.ref_size, shape.ref_size);
    job.reference = reference.matrices();
    job.search = search.matrices();
    job.shifts = shape.shifts;
    job.pairs =
        shape.pairing == Pairing::n_to_m ? std::int64_t{shape.references} * shape.windows : shape.windows;
  }

  static std::vector<PatchPosition> positions(const Shape& shape, int count, int size, unsigned seed) {
    const int margin = (shape.window_size - size) / 2;
    return shape.step > 0 ? grid_positions(count, shape.step, margin, size)
                          : random_positions(count, size, seed);
  }
};

using Collect = std::function<void(const std::string& name, std::function<void()> launch)>;

void add_sums(const Collect& collect, const std::shared_ptr<ShapeOnGpu>& s) {
  s->sums.reserve(s->job.outputs() * size_of(s->job.sums));
  for (const kernels::NccVariant& variant : kernels::ncc_variants())
    if (variant.computes_sums() && variant.unavailable_reason().empty() &&
        variant.unsupported_reason(s->job).empty())
      collect(std::string(variant.name), [s, job = s->job, &variant] {
        kernels::launch_ncc(variant, job, s->sums.data(), s->workspace, s->stream.handle());
      });
}

void add_scoring(const Collect& collect, const std::shared_ptr<ShapeOnGpu>& s) {
  NccJob& job = s->job;
  job.sums = kernels::sums_for_scores(job.type, job.reference.height, job.reference.width);
  s->sums.reserve(job.outputs() * size_of(job.sums));
  auto* surfaces = static_cast<float*>(s->scores.reserve(job.outputs() * sizeof(float)));
  auto* found = static_cast<Peak*>(s->peaks.reserve(job.pairs * sizeof(Peak)));
  s->moments.reserve(job.reference.count * kernels::moments_bytes);
  s->peak_workspace.reserve(kernels::peaks_workspace_bytes(job));
  collect("moments of the references",
          [s] { kernels::launch_reference_moments(s->job, s->moments.data(), s->stream.handle()); });
  collect("scores from sums", [s, surfaces] {
    kernels::launch_scores(s->job, Criterion::zncc, kernels::ScoreKind::score, s->sums.data(),
                           s->moments.data(), surfaces, s->stream.handle());
  });
  collect("peaks from scores", [s, surfaces, found] {
    kernels::launch_peaks(s->job, Criterion::zncc, surfaces, found, s->peak_workspace.data(),
                          s->stream.handle());
  });
  for (const kernels::NccVariant& variant : kernels::ncc_variants()) {
    if (!variant.score_fusion() || !variant.unsupported_reason(job).empty()) continue;
    if (variant.can_fuse(job, kernels::FusedOutput::scores))
      collect(std::string(variant.name) + ", fused scores", [s, surfaces, &variant] {
        variant.score_fusion()->launch_scores(s->job, Criterion::zncc, kernels::ScoreKind::score, surfaces,
                                              s->workspace, s->stream.handle());
      });
    if (variant.can_fuse(job, kernels::FusedOutput::peaks))
      collect(std::string(variant.name) + ", fused peaks", [s, found, &variant] {
        variant.score_fusion()->launch_peaks(s->job, Criterion::zncc, found, s->workspace,
                                             s->stream.handle());
      });
  }
}

void add_all() {
  for (const Shape& shape : shapes())
    bench_gpu::add([shape] {
      const auto on_gpu = std::make_shared<ShapeOnGpu>(shape);
      bench_gpu::Measurements out;
      const Collect collect = [&](const std::string& name, std::function<void()> launch) {
        out.push_back({shape.name + "/" + name, &on_gpu->stream, std::move(launch), 0, {}, {}});
      };
      add_sums(collect, on_gpu);
      if (shape.ref_size != shape.window_size) add_scoring(collect, on_gpu);  // shifts that are defined
      return out;
    });
}

}  // namespace

int main(int argc, char** argv) { return bench_gpu::run_all(argc, argv, add_all); }

#include <cmath>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/filter.hpp>
#include <dic/kernels/ncc.hpp>
#include <dic/kernels/pyramid.hpp>
#include <dic/kernels/reduce.hpp>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/device_benchmark.hpp"

// The supporting kernels on images of 4096 x 4096, and on fields with a node per 5 x 5 of their pixels, in
// device memory. Bytes per second count what must be read and written.
namespace {

using namespace dic;
using kernels::Border;
using kernels::DeviceBuffer;
using kernels::GradientOf;
using kernels::Power;
using kernels::Segments;
using kernels::Stream;

constexpr int size = 4096;
constexpr double pixels = double{size} * size;

using bench_gpu::Measurements;

/// A random image and memory for the results.
template <typename T>
struct Setup {
  Stream stream;
  DeviceBuffer memory, table, other, workspace;
  kernels::DeviceImage image;
  std::string type;

  explicit Setup(std::string name) : type(std::move(name)) {
    std::mt19937 random(1);
    std::vector<T> values(static_cast<std::size_t>(pixels));
    for (T& value : values) value = static_cast<T>(random() % 65536);
    kernels::upload(memory.reserve(values.size() * sizeof(T)), values.data(), values.size() * sizeof(T),
                    stream);
    stream.synchronize("upload");
    image = {memory.data(), size * sizeof(T), size, size};
    table.reserve(static_cast<std::size_t>(8 * (size + 1.0) * (size + 1)));
    other.reserve(static_cast<std::size_t>(4 * pixels));
    workspace.reserve(64 << 20);
  }
  kernels::DevicePlane<float> plane(const DeviceBuffer& buffer) const {
    return {static_cast<float*>(buffer.data()), size * sizeof(float)};
  }
};

template <typename T>
using Shared = std::shared_ptr<const Setup<T>>;

template <typename T>
void collect(Measurements& out, const Shared<T>& s, const std::string& name, double bytes,
             std::function<void()> launch) {
  out.push_back({name, &s->stream, std::move(launch), bytes, {}, {}});
}

template <typename T>
void add_filters(Measurements& out, const Shared<T>& s, ScalarType type) {
  for (const int taps : {3, 7, 15, 31, 63}) {
    const std::vector<float> weights(taps, 1.0F / static_cast<float>(taps));
    collect(out, s, s->type + " convolution " + std::to_string(taps) + " x " + std::to_string(taps),
            pixels * (sizeof(T) + 4), [=] {
              kernels::launch_convolution(s->image, type, weights, weights, Border::mirror,
                                          s->plane(s->table), s->stream.handle());
            });
  }
  const auto gradient = [&](GradientOf of, const char* name) {
    collect(out, s, s->type + " gradient of " + name, pixels * (sizeof(T) + 8), [=] {
      kernels::launch_gradient(s->image, type, of, s->plane(s->table), s->plane(s->other),
                               s->stream.handle());
    });
  };
  gradient(GradientOf::image, "an image");
  if constexpr (std::is_same_v<T, float>) {
    gradient(GradientOf::cubic_spline, "a cubic spline");
    gradient(GradientOf::quintic_spline, "a quintic spline");
  }
}

template <typename T, Power power>
void add_integral(Measurements& out, const Shared<T>& s, const char* name) {
  using Sum = kernels::IntegralOf<T, power>;
  collect(out, s, s->type + " integral image of " + name, pixels * (sizeof(T) + sizeof(Sum)), [=] {
    kernels::launch_integral<T, power>(s->image, static_cast<Sum*>(s->table.data()), s->workspace.data(),
                                       s->stream.handle());
  });
}

template <typename T>
void add_reductions(Measurements& out, const Shared<T>& s) {
  for (const int length : {81, 1024, size * size}) {
    const auto count = static_cast<std::int64_t>(pixels) / length;
    const Segments<T> in{static_cast<const T*>(s->memory.data()), count, length, length};
    const std::string of = " of " + std::to_string(count) + " x " + std::to_string(length);
    collect(out, s, s->type + " sums" + of, pixels * sizeof(T), [=] {
      kernels::launch_sums(in, static_cast<kernels::SumOf<T>*>(s->table.data()), s->workspace.data(),
                           s->stream.handle());
    });
    collect(out, s, s->type + " maxima" + of, pixels * sizeof(T), [=] {
      kernels::launch_maxima(in, static_cast<kernels::Element<T>*>(s->table.data()), s->workspace.data(),
                             s->stream.handle());
    });
  }
}

template <typename T>
void add_pyramid(Measurements& out, const Shared<T>& s, ScalarType type) {
  const auto plane = [](const DeviceBuffer& buffer, int width) {
    return kernels::DevicePlane<std::uint8_t>{static_cast<std::uint8_t*>(buffer.data()), width};
  };
  const auto stretch = [=](const kernels::DevicePlane<std::uint8_t>& full) {
    auto* extrema = static_cast<kernels::Extrema*>(s->workspace.data());
    kernels::launch_extrema(s->image, type, extrema, s->stream.handle());
    kernels::launch_stretched(s->image, type, extrema, kernels::extrema_of_rows(s->image.height), full,
                              plane(s->other, size / 2), s->stream.handle());
  };
  collect(out, s, s->type + " stretched, full and half size", pixels * (2 * sizeof(T) + 1.25),
          [=] { stretch(plane(s->table, size)); });
  collect(out, s, s->type + " stretched, half size", pixels * (2 * sizeof(T) + 0.25), [=] { stretch({}); });
  if constexpr (std::is_same_v<T, std::uint8_t>)
    collect(out, s, s->type + " halved", pixels * 1.25,
            [=] { kernels::launch_halved(s->image, plane(s->other, size / 2), s->stream.handle()); });
}

void add_largest(Measurements& out, const Shared<float>& s) {
  for (const int length : {1024, size * size}) {
    for (const int k : {1, 16, 1024}) {
      const auto count = static_cast<std::int64_t>(pixels) / length;
      if (double(count) * k > pixels / 4) continue;  // more results than input
      const Segments<float> in{static_cast<const float*>(s->memory.data()), count, length, length};
      collect(out, s,
              "f32 largest " + std::to_string(k) + " of " + std::to_string(count) + " x " +
                  std::to_string(length),
              pixels * sizeof(float), [=] {
                kernels::launch_largest(in, k, static_cast<kernels::Element<float>*>(s->table.data()),
                                        s->workspace.data(), s->stream.handle());
              });
    }
  }
}

/// A field of which a share is lost, at random nodes.
struct FieldOnGpu {
  static constexpr int nodes_across = size / 5;
  static constexpr std::int64_t nodes = std::int64_t{nodes_across} * nodes_across;

  Stream stream;
  DeviceBuffer u_memory, v_memory, status_memory, inside_memory, strain_memory, workspace;
  kernels::DeviceGrid grid;
  kernels::FieldArrays field;

  explicit FieldOnGpu(double lost) {
    std::mt19937 random(1);
    std::vector<double> u(nodes);
    std::vector<std::uint8_t> status(nodes);  // `ok` is 0
    for (std::int64_t k = 0; k < nodes; ++k) {
      u[k] = 0.01 * static_cast<double>(k % nodes_across) + 1e-8 * static_cast<double>(random() % 1000000);
      status[k] = random() % 1000 < 1000 * lost;
    }
    for (DeviceBuffer* component : {&u_memory, &v_memory})
      kernels::upload(component->reserve(8 * nodes), u.data(), 8 * nodes, stream);
    kernels::upload(status_memory.reserve(nodes), status.data(), nodes, stream);
    kernels::fill(inside_memory.reserve(nodes), 1, nodes, stream.handle());
    auto* const strain = static_cast<float*>(strain_memory.reserve(11 * sizeof(float) * nodes));
    grid = {nodes_across, nodes_across, 5, static_cast<const std::uint8_t*>(inside_memory.data())};
    field.u = static_cast<double*>(u_memory.data());
    field.v = static_cast<double*>(v_memory.data());
    field.status = static_cast<Status*>(status_memory.data());
    field.exx = strain;
    field.eyy = strain + nodes;
    field.exy = strain + 2 * nodes;
    field.e1 = strain + 3 * nodes;
    field.e2 = strain + 4 * nodes;
    field.von_mises = strain + 5 * nodes;
    field.sigma_exx = strain + 6 * nodes;
    field.sigma_eyy = strain + 7 * nodes;
    field.sigma_exy = strain + 8 * nodes;
    field.sigma_u = strain + 9 * nodes;
    field.sigma_v = strain + 10 * nodes;
    kernels::fill(field.sigma_u, 0, 2 * sizeof(float) * nodes, stream.handle());
    workspace.reserve(kernels::fields_workspace_bytes(grid));
    stream.synchronize("upload");
  }
};

/// The outlier test and the strain.
Measurements of_field(double lost) {
  const auto f = std::make_shared<const FieldOnGpu>(lost);
  constexpr double nodes = FieldOnGpu::nodes;
  const std::string of = ", " + std::to_string(std::lround(100 * lost)) + " % of the nodes lost";
  Measurements out;
  out.push_back(
      {"outlier test" + of,
       &f->stream,
       [=] { kernels::launch_mark_outliers(f->grid, f->field, {}, f->workspace.data(), f->stream.handle()); },
       18 * nodes,
       {},
       {}});
  for (const int window : {5, 15, 31, 127})
    out.push_back({"strain, window " + std::to_string(window) + of,
                   &f->stream,
                   [=] {
                     kernels::launch_strain(f->grid, f->field, {.window = window}, {}, f->workspace.data(),
                                            f->stream.handle());
                   },
                   62 * nodes,
                   {},
                   {}});
  return out;
}

/// 10,000 subsets of 33 x 33 that a mask cuts, searched at most `range` px away.
struct MaskedSubsets {
  static constexpr int count = 10'000, subset = 33, per_row = 100;

  DeviceBuffer mask_memory, images, positions, peaks;
  kernels::Workspace workspace;
  kernels::NccJob job;

  template <typename T>
  MaskedSubsets(const Setup<T>& s, ScalarType type, int range) {
    std::vector<PatchPosition> references, windows;
    for (int k = 0; k < count; ++k) {
      references.push_back({0, 50 + k % per_row * 39, 50 + k / per_row * 39});
      windows.push_back({0, references.back().x - range + 3, references.back().y - range - 2});
    }
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(pixels));
    for (std::size_t i = 0; i < mask.size(); ++i)
      mask[i] = (i % size + i / size / 3) % 39 < 30;  // slanted stripes
    kernels::upload(mask_memory.reserve(mask.size()), mask.data(), mask.size(), s.stream);
    const kernels::DeviceImage both[] = {s.image, {mask_memory.data(), size, size, size}};
    auto* const of_images = static_cast<kernels::DeviceImage*>(images.reserve(sizeof both));
    auto* const of_references =
        static_cast<PatchPosition*>(positions.reserve(2 * count * sizeof(PatchPosition)));
    kernels::upload(of_images, both, sizeof both, s.stream);
    kernels::upload(of_references, references.data(), count * sizeof(PatchPosition), s.stream);
    kernels::upload(of_references + count, windows.data(), count * sizeof(PatchPosition), s.stream);
    job.pairing = Pairing::one_to_one;
    job.type = type;
    job.sums = kernels::sums_for_scores(type, subset, subset);
    job.reference = {of_images, of_references, count, subset, subset};
    job.search = {of_images, of_references + count, count, subset + 2 * range, subset + 2 * range};
    job.shifts = {0, 2 * range, 0, 2 * range};
    job.pairs = count;
    peaks.reserve(count * sizeof(Peak));
    s.stream.synchronize("upload");
  }
};

template <typename T>
void add_masked(Measurements& out, const Shared<T>& s, ScalarType type, int range) {
  const auto m = std::make_shared<MaskedSubsets>(*s, type, range);
  const double bytes = static_cast<double>(m->job.outputs()) * 2 * size_of(m->job.sums);  // out and back
  collect(out, s, s->type + " masked peaks, +-" + std::to_string(range) + " px", bytes, [=] {
    kernels::launch_masked_peaks(m->job, Criterion::zncc, static_cast<Peak*>(m->peaks.data()), m->workspace,
                                 s->stream.handle());
  });
}

template <typename T>
Measurements of_images(const std::string& name, ScalarType type) {
  const auto setup = std::make_shared<const Setup<T>>(name);
  Measurements out;
  for (const int range : {2, 15}) add_masked<T>(out, setup, type, range);
  add_filters<T>(out, setup, type);
  add_integral<T, Power::one>(out, setup, "values");
  add_integral<T, Power::two>(out, setup, "squares");
  add_reductions<T>(out, setup);
  add_pyramid<T>(out, setup, type);
  if constexpr (std::is_same_v<T, float>) add_largest(out, setup);
  return out;
}

void add_all() {
  for (const double lost : {0.0, 0.01, 0.05}) bench_gpu::add([=] { return of_field(lost); });
  bench_gpu::add([] { return of_images<std::uint8_t>("u8", ScalarType::u8); });
  bench_gpu::add([] { return of_images<std::uint16_t>("u16", ScalarType::u16); });
  bench_gpu::add([] { return of_images<float>("f32", ScalarType::f32); });
}

}  // namespace

int main(int argc, char** argv) { return bench_gpu::run_all(argc, argv, add_all); }

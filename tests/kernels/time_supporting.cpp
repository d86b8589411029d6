#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/filter.hpp>
#include <dic/kernels/ncc.hpp>
#include <dic/kernels/pyramid.hpp>
#include <dic/kernels/reduce.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/device_timing.hpp"

// Times the supporting kernels on images of 4096 x 4096, and on fields with a node per 5 x 5 of their
// pixels, in device memory: medians over repeats, warm; the floor is what must be read and written, at 3.0
// TB/s.
//
//     kernels_time_supporting
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

template <typename Launch>
void report(const Stream& stream, const std::string& name, double bytes, Launch&& launch) {
  const double seconds = test::median_seconds(stream, launch), floor = bytes / 3.0e12;
  std::printf("%-44s %8.1f us   floor %6.1f us   %3.0f %%\n", name.c_str(), 1e6 * seconds, 1e6 * floor,
              100 * floor / seconds);
  std::fflush(stdout);
}

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
void time_filters(const Setup<T>& s, ScalarType type) {
  for (const int taps : {3, 7, 15, 31, 63}) {
    const std::vector<float> weights(taps, 1.0F / static_cast<float>(taps));
    report(s.stream, s.type + " convolution " + std::to_string(taps) + " x " + std::to_string(taps),
           pixels * (sizeof(T) + 4), [&] {
             kernels::launch_convolution(s.image, type, weights, weights, Border::mirror, s.plane(s.table),
                                         s.stream.handle());
           });
  }
  const auto gradient = [&](GradientOf of, const char* name) {
    report(s.stream, s.type + " gradient of " + name, pixels * (sizeof(T) + 8), [&] {
      kernels::launch_gradient(s.image, type, of, s.plane(s.table), s.plane(s.other), s.stream.handle());
    });
  };
  gradient(GradientOf::image, "an image");
  if constexpr (std::is_same_v<T, float>) {
    gradient(GradientOf::cubic_spline, "a cubic spline");
    gradient(GradientOf::quintic_spline, "a quintic spline");
  }
}

template <typename T, Power power>
void time_integral(const Setup<T>& s, const char* name) {
  using Sum = kernels::IntegralOf<T, power>;
  report(s.stream, s.type + " integral image of " + name, pixels * (sizeof(T) + sizeof(Sum)), [&] {
    kernels::launch_integral<T, power>(s.image, static_cast<Sum*>(s.table.data()), s.workspace.data(),
                                       s.stream.handle());
  });
}

template <typename T>
void time_reductions(const Setup<T>& s) {
  for (const int length : {81, 1024, size * size}) {
    const auto count = static_cast<std::int64_t>(pixels) / length;
    const Segments<T> in{static_cast<const T*>(s.memory.data()), count, length, length};
    const std::string of = " of " + std::to_string(count) + " x " + std::to_string(length);
    report(s.stream, s.type + " sums" + of, pixels * sizeof(T), [&] {
      kernels::launch_sums(in, static_cast<kernels::SumOf<T>*>(s.table.data()), s.workspace.data(),
                           s.stream.handle());
    });
    report(s.stream, s.type + " maxima" + of, pixels * sizeof(T), [&] {
      kernels::launch_maxima(in, static_cast<kernels::Element<T>*>(s.table.data()), s.workspace.data(),
                             s.stream.handle());
    });
  }
}

template <typename T>
void time_pyramid(const Setup<T>& s, ScalarType type) {
  const auto plane = [](const DeviceBuffer& buffer, int width) {
    return kernels::DevicePlane<std::uint8_t>{static_cast<std::uint8_t*>(buffer.data()), width};
  };
  const auto stretch = [&](const kernels::DevicePlane<std::uint8_t>& full) {
    auto* extrema = static_cast<kernels::Extrema*>(s.workspace.data());
    kernels::launch_extrema(s.image, type, extrema, s.stream.handle());
    kernels::launch_stretched(s.image, type, extrema, kernels::extrema_of_rows(s.image.height), full,
                              plane(s.other, size / 2), s.stream.handle());
  };
  report(s.stream, s.type + " stretched, full and half size", pixels * (2 * sizeof(T) + 1.25),
         [&] { stretch(plane(s.table, size)); });
  report(s.stream, s.type + " stretched, half size", pixels * (2 * sizeof(T) + 0.25), [&] { stretch({}); });
  if constexpr (std::is_same_v<T, std::uint8_t>)
    report(s.stream, s.type + " halved", pixels * 1.25,
           [&] { kernels::launch_halved(s.image, plane(s.other, size / 2), s.stream.handle()); });
}

void time_largest(const Setup<float>& s) {
  for (const int length : {1024, size * size}) {
    for (const int k : {1, 16, 1024}) {
      const auto count = static_cast<std::int64_t>(pixels) / length;
      if (double(count) * k > pixels / 4) continue;  // more results than input
      const Segments<float> in{static_cast<const float*>(s.memory.data()), count, length, length};
      report(s.stream,
             "f32 largest " + std::to_string(k) + " of " + std::to_string(count) + " x " +
                 std::to_string(length),
             pixels * sizeof(float), [&] {
               kernels::launch_largest(in, k, static_cast<kernels::Element<float>*>(s.table.data()),
                                       s.workspace.data(), s.stream.handle());
             });
    }
  }
}

template <typename T>
void time_all(const char* name, ScalarType type) {
  const Setup<T> setup(name);
  for (const int range : {2, 15}) time_masked(setup, type, range);
  time_filters(setup, type);
  time_integral<T, Power::one>(setup, "values");
  time_integral<T, Power::two>(setup, "squares");
  time_reductions(setup);
  time_pyramid(setup, type);
  if constexpr (std::is_same_v<T, float>) time_largest(setup);
}

/// The outlier test and the strain of a field of which a share is lost, at random nodes.
void time_fields(double lost) {
  constexpr int nodes_across = size / 5;
  constexpr std::int64_t nodes = std::int64_t{nodes_across} * nodes_across;
  const Stream stream;
  std::mt19937 random(1);
  std::vector<double> u(nodes);
  std::vector<std::uint8_t> status(nodes);  // `ok` is 0
  for (std::int64_t k = 0; k < nodes; ++k) {
    u[k] = 0.01 * static_cast<double>(k % nodes_across) + 1e-8 * static_cast<double>(random() % 1000000);
    status[k] = random() % 1000 < 1000 * lost;
  }
  DeviceBuffer u_memory, v_memory, status_memory, inside_memory, strain_memory, workspace;
  for (DeviceBuffer* component : {&u_memory, &v_memory})
    kernels::upload(component->reserve(8 * nodes), u.data(), 8 * nodes, stream);
  kernels::upload(status_memory.reserve(nodes), status.data(), nodes, stream);
  kernels::fill(inside_memory.reserve(nodes), 1, nodes, stream.handle());
  auto* const strain = static_cast<float*>(strain_memory.reserve(6 * sizeof(float) * nodes));
  const kernels::DeviceGrid grid{nodes_across, nodes_across, 5,
                                 static_cast<const std::uint8_t*>(inside_memory.data())};
  const kernels::FieldArrays field{.u = static_cast<double*>(u_memory.data()),
                                   .v = static_cast<double*>(v_memory.data()),
                                   .status = static_cast<Status*>(status_memory.data()),
                                   .exx = strain,
                                   .eyy = strain + nodes,
                                   .exy = strain + 2 * nodes,
                                   .e1 = strain + 3 * nodes,
                                   .e2 = strain + 4 * nodes,
                                   .von_mises = strain + 5 * nodes};
  workspace.reserve(kernels::fields_workspace_bytes(grid));
  stream.synchronize("upload");

  const std::string of = ", " + std::to_string(std::lround(100 * lost)) + " % of the nodes lost";
  report(stream, "outlier test" + of, 18.0 * nodes,
         [&] { kernels::launch_mark_outliers(grid, field, {}, workspace.data(), stream.handle()); });
  for (const int window : {5, 15, 31, 127})
    report(stream, "strain, window " + std::to_string(window) + of, 42.0 * nodes, [&] {
      kernels::launch_strain(grid, field, {.window = window}, workspace.data(), stream.handle());
    });
}

/// Peaks of 10,000 subsets of 33 x 33 that a mask cuts, at most `range` px away.
template <typename T>
void time_masked(const Setup<T>& s, ScalarType type, int range) {
  constexpr int count = 10'000, subset = 33, per_row = 100;
  std::vector<PatchPosition> references, windows;
  for (int k = 0; k < count; ++k) {
    references.push_back({0, 50 + k % per_row * 39, 50 + k / per_row * 39});
    windows.push_back({0, references.back().x - range + 3, references.back().y - range - 2});
  }
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(pixels));
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask[i] = (i % size + i / size / 3) % 39 < 30;  // slanted stripes
  DeviceBuffer mask_memory, images, positions, peaks;
  kernels::upload(mask_memory.reserve(mask.size()), mask.data(), mask.size(), s.stream);
  const kernels::DeviceImage both[] = {s.image, {mask_memory.data(), size, size, size}};
  auto* const of_images = static_cast<kernels::DeviceImage*>(images.reserve(sizeof both));
  auto* const of_references =
      static_cast<PatchPosition*>(positions.reserve(2 * count * sizeof(PatchPosition)));
  kernels::upload(of_images, both, sizeof both, s.stream);
  kernels::upload(of_references, references.data(), count * sizeof(PatchPosition), s.stream);
  kernels::upload(of_references + count, windows.data(), count * sizeof(PatchPosition), s.stream);
  const kernels::NccJob job{
      .pairing = Pairing::one_to_one,
      .type = type,
      .sums = kernels::sums_for_scores(type, subset, subset),
      .reference = {of_images, of_references, count, subset, subset},
      .search = {of_images, of_references + count, count, subset + 2 * range, subset + 2 * range},
      .shifts = {0, 2 * range, 0, 2 * range},
      .pairs = count};
  auto* const found = static_cast<Peak*>(peaks.reserve(count * sizeof(Peak)));
  kernels::Workspace workspace;
  s.stream.synchronize("upload");
  const double bytes = static_cast<double>(job.outputs()) * 2 * size_of(job.sums);  // out and back
  report(s.stream, s.type + " masked peaks, +-" + std::to_string(range) + " px", bytes,
         [&] { kernels::launch_masked_peaks(job, Criterion::zncc, found, workspace, s.stream.handle()); });
}

}  // namespace

int main() {
  try {
    std::printf("%s\n", kernels::find_device(0).model.c_str());
    for (const double lost : {0.0, 0.01, 0.05}) time_fields(lost);
    time_all<std::uint8_t>("u8", ScalarType::u8);
    time_all<std::uint16_t>("u16", ScalarType::u16);
    time_all<float>("f32", ScalarType::f32);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/refine.hpp>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "track/integer_search.hpp"

// Times the stages of the refinement on the GPU and compares its results with truth and with the CPU's.
// Iterations begin at whole pixels, and where the search would begin them: at the fit of the correlation
// peak, with no slopes yet.
//
//     refine_time [SIZE [STRAIN [TOLERANCE]]]      image px, 4096; strain, 0.003; px, 1e-3
namespace {

using namespace dic;
using kernels::DeviceBuffer;
using kernels::PlaneLayout;
using kernels::Stream;

constexpr double noise_sd = 2;
constexpr int step = 5, margin = 40;

/// Waves of many directions and lengths, as good as speckle and exact between pixels, under an affine motion.
class Scene {
 public:
  Scene(int size, double strain) : size_(size), strain_(strain) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> unit(0, 1);
    for (Wave& wave : waves_) {
      const double angle = 2 * std::numbers::pi * unit(random), frequency = 0.25 + 0.75 * unit(random);
      wave = {frequency * std::cos(angle), frequency * std::sin(angle), 2 * std::numbers::pi * unit(random)};
    }
  }
  double u(double x, double y) const {
    return 3.3 + strain_ * (x - size_ / 2) + 0.4 * strain_ * (y - size_ / 2);
  }
  double v(double x, double y) const {
    return -2.6 - 0.5 * strain_ * (x - size_ / 2) + 0.7 * strain_ * (y - size_ / 2);
  }

  /// 8-bit image with noise, at rest (the current one) or displaced.
  Image image(bool displaced, ThreadPool& pool) const {
    Image out({size_, size_}, ScalarType::u8);
    pool.parallel_for(size_, 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (auto y = static_cast<int>(begin); y < end; ++y) draw_row(out, y, displaced);
    });
    return out;
  }

 private:
  struct Wave {
    double x, y, phase;
  };

  void draw_row(Image& out, int y, bool displaced) const {
    std::vector<double> sum(size_);
    for (const Wave& wave : waves_)
      for (int x = 0; x < size_; ++x) {
        const double px = displaced ? x + u(x, y) : x, py = displaced ? y + v(x, y) : y;
        sum[x] += std::sin(wave.x * px + wave.y * py + wave.phase);
      }
    std::mt19937 random(2 * y + displaced);
    std::normal_distribution<double> noise(0, noise_sd);
    const double amplitude = 38 * std::sqrt(2.0 / waves_.size());
    for (int x = 0; x < size_; ++x)
      out.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::clamp(std::lround(128 + amplitude * sum[x] + noise(random)), 0L, 255L));
  }

  int size_;
  double strain_;
  std::vector<Wave> waves_ = std::vector<Wave>(32);
};

struct Points {
  std::vector<int> x, y;
  std::vector<std::int64_t> index;

  explicit Points(int size) {
    for (int j = margin; j < size - margin; j += step)
      for (int i = margin; i < size - margin; i += step) {
        index.push_back(static_cast<std::int64_t>(x.size()));
        x.push_back(i);
        y.push_back(j);
      }
  }
};

using Starts = std::vector<ShapeParameters>;

/// Displacements rounded to whole pixels.
Starts whole_pixels(const Scene& scene, const Points& points) {
  Starts out(points.x.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k].u = std::round(scene.u(points.x[k], points.y[k]));
    out[k].v = std::round(scene.v(points.x[k], points.y[k]));
  }
  return out;
}

/// What a search around `whole` finds.
Starts fitted_peaks(const Image& reference, const Image& current, const Points& points, const Starts& whole,
                    int subset) {
  constexpr int range = 2;
  const track::SubsetShapes shapes(reference.width(), reference.height(), points.x, points.y, subset / 2, {});
  const track::IntegerSearch search(reference, {}, shapes);
  std::vector<track::Prediction> predictions;
  for (const ShapeParameters& s : whole) predictions.push_back(track::rounded(s.u, s.v));
  Correlator correlator("cuda");
  Starts out;
  for (const track::FoundShift& found :
       search.around(correlator, current, points.index, predictions, range)) {
    out.emplace_back();
    out.back().u = found.u;
    out.back().v = found.v;
  }
  return out;
}

/// Median milliseconds of one launch.
template <typename Launch>
double milliseconds(const Stream& stream, Launch&& launch) {
  kernels::Stopwatch watch;
  std::vector<double> times;
  for (int repeat = 0; repeat < 8; ++repeat) {
    watch.start(stream);
    launch();
    watch.stop(stream);
    stream.synchronize("timing");
    if (repeat > 0) times.push_back(1e3 * watch.seconds());
  }
  std::ranges::nth_element(times, times.begin() + 3);
  return times[3];
}

struct Setting {
  int subset, order;
  Interpolation interpolation;
};

/// Everything on the device, stage by stage.
class Stages {
 public:
  Stages(const Image& reference, const Image& current, const Points& points)
      : layout_(reference.width(), reference.height()), points_(points) {
    reference_ = uploaded(reference_pixels_, reference);
    current_ = uploaded(current_pixels_, current);
    upload(x_, points.x);
    upload(y_, points.y);
    coefficients_.reserve(layout_.elements() * sizeof(kernels::CoefficientPair));
    pixels_.reserve(layout_.elements() * sizeof(kernels::ReferencePixel));
    rest_.reserve(layout_.elements() * sizeof(std::uint32_t));
    range_.reserve(sizeof(kernels::GreyRange));
  }

  void time_splines(Interpolation interpolation) {
    std::printf("%-8s coefficients %.4f ms, reference %.4f ms\n",
                std::string(to_string(interpolation)).c_str(),
                milliseconds(stream_, [&] { coefficients(interpolation); }),
                milliseconds(stream_, [&] { reference(interpolation); }));
  }

  /// The reference's side, which iterations need.
  void prepare(const Setting& s, const RefineOptions& options) {
    coefficients(s.interpolation);
    reference_side_ = reference(s.interpolation);
    reference_side_.points_in_a_row = static_cast<int>(std::ranges::count(points_.y, points_.y.front()));
    auto* subsets = reserve<kernels::PreparedSubset>(subsets_, count());
    auto* matrices = reserve<float>(matrices_, count() * kernels::matrix_floats(s.order));
    const double prepare = milliseconds(stream_, [&] {
      kernels::launch_prepare_subsets(reference_side_, options, static_cast<const int*>(x_.data()),
                                      static_cast<const int*>(y_.data()), count(), subsets, matrices,
                                      stream_.handle());
    });
    std::printf("subset %3d order %d %-7s prepare %6.3f ms\n", s.subset, s.order,
                std::string(to_string(s.interpolation)).c_str(), prepare);
  }

  void iterate(const char* name, const RefineOptions& options, const Starts& starts) {
    std::vector<kernels::RefineTask> tasks;
    for (const ShapeParameters& start : starts) {
      const kernels::SplitShape s = kernels::split(start);
      tasks.push_back({.point = static_cast<int>(tasks.size()), .u = s.u, .v = s.v, .start = s.rest});
    }
    upload(tasks_, tasks);
    auto* results = reserve<kernels::RefineResult>(results_, count());
    const double refine = milliseconds(stream_, [&] {
      kernels::launch_refine(
          reference_side_, options, static_cast<const kernels::PreparedSubset*>(subsets_.data()),
          static_cast<const float*>(matrices_.data()), coefficients_at_origin(),
          {static_cast<const kernels::RefineTask*>(tasks_.data()), count()}, results, stream_);
    });
    std::vector<kernels::RefineResult> found(count());
    kernels::download(found.data(), results, count() * sizeof(kernels::RefineResult), stream_);
    stream_.synchronize("results");
    double iterations = 0;
    for (const auto& r : found) iterations += r.iterations;
    const double points_per_us = 1e-3 * static_cast<double>(count()) / refine;
    std::printf("  from %-12s refine %7.3f ms %6.1f M points/s, %.2f iterations: %6.1f M/s\n", name, refine,
                points_per_us, iterations / static_cast<double>(count()), 1e-3 * iterations / refine);
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(points_.x.size()); }
  template <typename T>
  static T* reserve(DeviceBuffer& buffer, std::int64_t count) {
    return static_cast<T*>(buffer.reserve(count * sizeof(T)));
  }
  ImageView uploaded(DeviceBuffer& buffer, const Image& image) {
    ImageView view = image;
    const std::size_t bytes = view.row_bytes * view.height;
    kernels::upload(buffer.reserve(bytes), view.data, bytes, stream_);
    view.data = buffer.data();
    return view;
  }
  template <typename T>
  void upload(DeviceBuffer& buffer, const std::vector<T>& values) {
    kernels::upload(buffer.reserve(values.size() * sizeof(T)), values.data(), values.size() * sizeof(T),
                    stream_);
    stream_.synchronize("upload");
  }
  kernels::CoefficientPair* coefficients_at_origin() const {
    return static_cast<kernels::CoefficientPair*>(coefficients_.data()) + layout_.origin();
  }
  void coefficients(Interpolation interpolation) {
    kernels::launch_spline_coefficients(current_, interpolation, coefficients_at_origin(), stream_.handle());
  }
  kernels::RefineReference reference(Interpolation interpolation) {
    auto* pixels = static_cast<kernels::ReferencePixel*>(pixels_.data()) + layout_.origin();
    auto* rest = static_cast<std::uint32_t*>(rest_.data()) + layout_.origin();
    auto* range = static_cast<kernels::GreyRange*>(range_.data());
    kernels::launch_reference_pixels(reference_, {}, interpolation, pixels, rest, range, stream_.handle());
    return {pixels, rest, range, layout_};
  }

  PlaneLayout layout_;
  const Points& points_;
  Stream stream_;
  ImageView reference_, current_;
  DeviceBuffer reference_pixels_, current_pixels_, x_, y_, tasks_, pixels_, coefficients_, rest_, range_;
  DeviceBuffer subsets_, matrices_, results_;
  kernels::RefineReference reference_side_;
};

/// Prints errors against truth, and against the CPU at every `stride`-th point.
void compare(const RefineOptions& options, const Scene& scene, const Points& points, const Starts& all_starts,
             const Image& reference, const Image& current) {
  constexpr std::size_t stride = 31;
  std::vector<RefinedPoint> gpu(points.x.size());
  Refiner on_gpu(options, "cuda");
  on_gpu.set_reference(reference, points.x, points.y);
  on_gpu.set_current(current);
  on_gpu.refine(points.index, all_starts, gpu);
  std::vector<int> x, y;
  std::vector<std::int64_t> index;
  Starts starts;
  for (std::size_t k = 0; k < points.x.size(); k += stride) {
    index.push_back(static_cast<std::int64_t>(x.size()));
    x.push_back(points.x[k]);
    y.push_back(points.y[k]);
    starts.push_back(all_starts[k]);
  }
  std::vector<RefinedPoint> cpu(x.size());
  Refiner on_cpu(options, "cpu");
  on_cpu.set_reference(reference, x, y);
  on_cpu.set_current(current);
  on_cpu.refine(index, starts, cpu);
  double error = 0, difference = 0, zncc = 0;
  int statuses = 0, far = 0, ok = 0;
  std::int64_t more_iterations = 0;
  for (std::size_t k = 0; k < gpu.size(); ++k) {
    if (gpu[k].status != Status::ok) continue;
    ++ok;
    const double e = gpu[k].shape.u - scene.u(points.x[k], points.y[k]);
    error += e * e;
  }
  for (std::size_t k = 0; k < cpu.size(); ++k) {
    const RefinedPoint& g = gpu[k * stride];
    statuses += g.status != cpu[k].status;
    const double d = std::max(std::abs(g.shape.u - cpu[k].shape.u), std::abs(g.shape.v - cpu[k].shape.v));
    far += d > 1e-4;
    more_iterations += g.iterations - cpu[k].iterations;
    difference = std::max(difference, d);
    zncc = std::max<double>(zncc, std::abs(g.zncc - cpu[k].zncc));
  }
  std::printf(
      "  ok %.4f rms %.5f px; CPU (%zu): statuses %d, du max %.1e (%d > 1e-4), zncc %.0e, %.3f iterations "
      "more\n",
      double(ok) / double(gpu.size()), std::sqrt(error / ok), cpu.size(), statuses, difference, far, zncc,
      static_cast<double>(more_iterations) / static_cast<double>(cpu.size()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int size = argc > 1 ? std::atoi(argv[1]) : 4096;
    const double strain = argc > 2 ? std::atof(argv[2]) : 0.003,
                 tolerance = argc > 3 ? std::atof(argv[3]) : 1e-3;
    ThreadPool pool;
    const Scene scene(size, strain);
    const Image reference = scene.image(true, pool), current = scene.image(false, pool);
    const Points points(size);
    const Starts whole = whole_pixels(scene, points);
    std::printf("%s: %dx%d, %zu points, strain %g, tolerance %g\n", kernels::find_device(0).model.c_str(),
                size, size, points.x.size(), strain, tolerance);
    Stages stages(reference, current, points);
    for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic})
      stages.time_splines(interpolation);
    const bool brief = argc > 4;
    for (const int subset : brief ? std::vector{31} : std::vector{31, 21, 33, 51}) {
      const Starts fitted = fitted_peaks(reference, current, points, whole, subset);
      for (const int order : {1, 2, 0})
        for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic}) {
          if (order == 0 && (subset != 31 || brief)) continue;
          const Setting setting{subset, order, interpolation};
          RefineOptions options;
          options.subset = subset;
          options.order = order;
          options.interpolation = interpolation;
          options.tolerance = tolerance;
          stages.prepare(setting, options);
          stages.iterate("whole pixels", options, whole);
          stages.iterate("fitted peaks", options, fitted);
          if (subset == 31 && !brief) compare(options, scene, points, fitted, reference, current);
          std::fflush(stdout);
        }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

#include <algorithm>
#include <cmath>
#include <dic/correlate.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/refine.hpp>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/device_benchmark.hpp"
#include "core/parallel.hpp"
#include "track/integer_search.hpp"

// The stages of the refinement on the GPU: 4096 x 4096, 8 bit, noise of 2 grey levels, strain 0.3 %, a point
// per 5 x 5 pixels. Iterations begin at whole pixels, and where the search would begin them: at the fit of
// the correlation peak, with no slopes yet. Counters: iterations of a point, and the root mean square of the
// errors of u in px.
namespace {

using namespace dic;
using bench_gpu::Measurements;
using kernels::DeviceBuffer;
using kernels::PlaneLayout;
using kernels::Stream;

constexpr int image_size = 4096;
constexpr double mean_strain = 0.003, noise_sd = 2;
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
  Image image(bool displaced, core::ThreadPool& pool) const {
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
  core::ThreadPool pool;
  const track::SubsetShapes shapes(reference.width(), reference.height(), points.x, points.y, subset / 2, {},
                                   pool);
  const track::IntegerSearch search(reference, {}, shapes, pool);
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

/// What all settings share.
struct Data {
  core::ThreadPool pool;
  Scene scene{image_size, mean_strain};
  Image reference = scene.image(true, pool), current = scene.image(false, pool);
  Points points{image_size};
  Starts whole = whole_pixels(scene, points);
};
const Data& data() {
  static const Data made;
  return made;
}

struct Setting {
  int subset, order;
  Interpolation interpolation;

  RefineOptions options() const {
    RefineOptions out;
    out.subset = subset;
    out.order = order;
    out.interpolation = interpolation;
    out.tolerance = 1e-3;
    return out;
  }
  std::string name() const {
    return "subset " + std::to_string(subset) + " order " + std::to_string(order) + " " +
           std::string(to_string(interpolation));
  }
};

/// The images on the GPU, and what the reference's side needs.
class Stages {
 public:
  Stages() : layout_(image_size, image_size) {
    reference_ = uploaded(reference_pixels_, data().reference);
    current_ = uploaded(current_pixels_, data().current);
    upload(x_, data().points.x);
    upload(y_, data().points.y);
    coefficients_.reserve(layout_.elements() * sizeof(kernels::CoefficientPair));
    pixels_.reserve(layout_.elements() * sizeof(kernels::ReferencePixel));
    rest_.reserve(layout_.elements() * sizeof(std::uint32_t));
    range_.reserve(sizeof(kernels::GreyRange));
  }
  const Stream& stream() const { return stream_; }

  void coefficients(Interpolation interpolation) {
    kernels::launch_spline_coefficients(current_, interpolation, coefficients_at_origin(), stream_.handle());
  }
  kernels::RefineReference reference(Interpolation interpolation) {
    auto* pixels = static_cast<kernels::ReferencePixel*>(pixels_.data()) + layout_.origin();
    auto* rest = static_cast<std::uint32_t*>(rest_.data()) + layout_.origin();
    auto* range = static_cast<kernels::GreyRange*>(range_.data());
    kernels::launch_reference_pixels(reference_, {}, interpolation, {pixels, rest}, range, stream_.handle());
    kernels::RefineReference all;
    all.pixels = pixels, all.rest = rest, all.range = range, all.layout = layout_;
    return all;
  }

  /// All that iterations of a setting need.
  void begin(const Setting& s) {
    coefficients(s.interpolation);
    reference_side_ = reference(s.interpolation);
    const std::vector<int>& y = data().points.y;
    reference_side_.grid_columns = static_cast<int>(std::ranges::count(y, y.front()));
    reserve<kernels::PreparedSubset>(subsets_, count());
    reserve<float>(matrices_, count() * kernels::matrix_floats(s.order));
    reserve<kernels::RefineResult>(results_, count());
    prepare(s.options());
  }
  void prepare(const RefineOptions& options) {
    kernels::launch_prepare_subsets(
        reference_side_, options,
        {static_cast<const int*>(x_.data()), static_cast<const int*>(y_.data()), count()}, prepared(),
        stream_.handle());
  }
  void upload_tasks(const Starts& starts) {
    std::vector<kernels::RefineTask> tasks;
    for (const ShapeParameters& start : starts) {
      const kernels::SplitShape s = kernels::split(start);
      tasks.push_back({.point = static_cast<int>(tasks.size()), .u = s.u, .v = s.v, .start = s.rest});
    }
    upload(tasks_, tasks);
  }
  void refine(const RefineOptions& options) {
    kernels::launch_refine({reference_side_, coefficients_at_origin()}, options, prepared(),
                           {static_cast<const kernels::RefineTask*>(tasks_.data()), count()}, results(),
                           stream_);
  }
  void report(benchmark::State& state) {
    std::vector<kernels::RefineResult> found(count());
    kernels::download(found.data(), results(), count() * sizeof(kernels::RefineResult), stream_);
    stream_.synchronize("results");
    double iterations = 0;
    for (const auto& r : found) iterations += r.iterations;
    state.counters["iterations"] = iterations / static_cast<double>(count());
    state.SetItemsProcessed(state.iterations() * count());
  }

 private:
  static std::int64_t count() { return static_cast<std::int64_t>(data().points.x.size()); }
  kernels::PreparedSubsets prepared() {
    return {static_cast<kernels::PreparedSubset*>(subsets_.data()), static_cast<float*>(matrices_.data())};
  }
  template <typename T>
  static T* reserve(DeviceBuffer& buffer, std::int64_t count) {
    return static_cast<T*>(buffer.reserve(count * sizeof(T)));
  }
  kernels::RefineResult* results() { return static_cast<kernels::RefineResult*>(results_.data()); }
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

  PlaneLayout layout_;
  Stream stream_;
  ImageView reference_, current_;
  DeviceBuffer reference_pixels_, current_pixels_, x_, y_, tasks_, pixels_, coefficients_, rest_, range_;
  DeviceBuffer subsets_, matrices_, results_;
  kernels::RefineReference reference_side_;
};

Measurements of_splines() {
  const auto stages = std::make_shared<Stages>();
  Measurements out;
  for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic}) {
    const std::string name(to_string(interpolation));
    out.push_back({.name = name + " coefficients", .stream = &stages->stream(), .launch = [=] {
                     stages->coefficients(interpolation);
                   }});
    out.push_back({.name = name + " reference", .stream = &stages->stream(), .launch = [=] {
                     stages->reference(interpolation);
                   }});
  }
  return out;
}

/// A counter: errors against the known motion.
void report_errors(benchmark::State& state, const Setting& setting, const Starts& starts) {
  Refiner refiner(setting.options(), "cuda");
  const Points& points = data().points;
  refiner.set_reference(data().reference, points.x, points.y);
  refiner.set_current(data().current);
  std::vector<RefinedPoint> found(points.x.size());
  refiner.refine(points.index, starts, found);
  double error = 0, ok = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (found[k].status != Status::ok) continue;
    const double e = found[k].shape.u - data().scene.u(points.x[k], points.y[k]);
    error += e * e;
    ++ok;
  }
  state.counters["rms_px"] = std::sqrt(error / ok);
}

Measurements of_setting(const Setting& setting) {
  const auto stages = std::make_shared<Stages>();
  stages->begin(setting);
  Measurements out;
  out.push_back({.name = setting.name() + "/prepare", .stream = &stages->stream(), .launch = [=] {
                   stages->prepare(setting.options());
                 }});
  const auto add_refine = [&](const std::string& from, const Starts& starts) {
    out.push_back({.name = setting.name() + "/refine from " + from,
                   .stream = &stages->stream(),
                   .launch = [=] { stages->refine(setting.options()); },
                   .prepare = [=] { stages->upload_tasks(starts); },
                   .report =
                       [=](benchmark::State& state) {
                         stages->report(state);
                         report_errors(state, setting, starts);
                       }});
  };
  add_refine("whole pixels", data().whole);
  add_refine("fitted peaks",
             fitted_peaks(data().reference, data().current, data().points, data().whole, setting.subset));
  return out;
}

void add_all() {
  bench_gpu::add(of_splines);
  for (const int subset : {31, 21, 33, 51})
    for (const int order : {1, 2, 0})
      for (const auto interpolation : {Interpolation::cubic, Interpolation::quintic})
        if (order > 0 || subset == 31)
          bench_gpu::add([=] { return of_setting({subset, order, interpolation}); });
}

}  // namespace

int main(int argc, char** argv) { return bench_gpu::run_all(argc, argv, add_all); }

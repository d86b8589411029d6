#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "analysis/noise.hpp"
#include "core/parallel.hpp"
#include "fields/outliers.hpp"
#include "track/backend.hpp"
#include "track/cpu/chance_matches.hpp"
#include "track/cpu/frame_points.hpp"
#include "track/cpu/lost_points.hpp"
#include "track/cpu/point_refinement.hpp"
#include "track/cpu/split_subsets.hpp"
#include "track/cpu/start_search.hpp"
#include "track/field_steps.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

/// Options, memory and threads that the references of one backend share.
struct Shared {
  TrackOptions options;
  const PointNodes& points;
  const ReferenceAnalysis& analysis;
  const Size image;
  StrainBy strain_by;
  Correlator correlator;
  core::ThreadPool& pool;
  RefinementMemory memory;
  std::set<std::string> kernels;

  Shared(const TrackOptions& o, const MeasuredScene& scene, StrainBy s, core::ThreadPool& threads)
      : options(o),
        points(scene.points),
        analysis(scene.analysis),
        image(scene.image),
        strain_by(s),
        correlator(correlate::open_correlator("cpu", threads)),
        pool(threads) {}
};

static_assert(std::is_trivially_copyable_v<RefinedPoint> && std::is_trivially_copyable_v<MaterialPoint> &&
              std::is_trivially_copyable_v<LostMemory>);

/// The state from which the next frame starts, as bytes.
std::vector<std::byte> state_of(std::span<const RefinedPoint> last, const LostMemory& memory) {
  const std::size_t points = last.size() * sizeof(RefinedPoint);
  std::vector<std::byte> state(sizeof memory + points);
  std::memcpy(state.data(), &memory, sizeof memory);
  std::memcpy(state.data() + sizeof memory, last.data(), points);
  return state;
}

/// Largest displacement of a start that can belong to an image, px.
constexpr double kLargestMotion = 1 << 16;

bool makes_sense(const RefinedPoint& point) {
  const ShapeParameters& s = point.shape;
  const auto is_small = [](double value) { return std::abs(value) < kLargestMotion; };  // false for NaN
  return static_cast<int>(point.status) < kStatusCount &&
         (point.status != Status::ok || std::ranges::all_of(std::array{s.u, s.ux, s.uy, s.uxx, s.uxy, s.uyy,
                                                                       s.v, s.vx, s.vy, s.vxx, s.vxy, s.vyy},
                                                            is_small));
}

bool makes_sense(const MaterialPoint& point) {
  const auto is_small = [](double value) { return std::abs(value) < kLargestMotion; };  // false for NaN
  return static_cast<int>(point.status) < kStatusCount &&
         std::ranges::all_of(std::array{point.u, point.v, point.dx, point.dy}, is_small);
}

bool makes_sense(const LostMemory& memory, std::int64_t points) {
  const auto counts = [points](std::int64_t value) { return value >= 0 && value <= points; };
  return counts(memory.unpredicted) && counts(memory.not_found) && counts(memory.by_features) &&
         memory.frames >= 0 && memory.frames < kFramesBetweenTries &&
         (memory.is_due == 0 || memory.is_due == 1);
}

bool lies_in(Size image, int x, int y) { return x >= 0 && y >= 0 && x < image.width && y < image.height; }

struct HostPositions final : PointPositions {
  LocatedPoints points;

  explicit HostPositions(LocatedPoints p) : points(std::move(p)) {}

  std::vector<std::byte> save() const override {
    if (!points.are_followed) return {};
    std::vector<std::byte> bytes;
    for (const auto part : {std::as_bytes(std::span(points.x)), std::as_bytes(std::span(points.y)),
                            std::as_bytes(std::span(points.material))})
      bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  }
};

/// Reads points of an image of this size; null if their number differs, or they lie outside.
std::shared_ptr<const HostPositions> positions_in(std::span<const std::byte> bytes, std::size_t points,
                                                  Size image) {
  LocatedPoints followed;
  followed.are_followed = true;
  followed.x.resize(points);
  followed.y.resize(points);
  followed.material.resize(points);
  const auto parts = {std::as_writable_bytes(std::span(followed.x)),
                      std::as_writable_bytes(std::span(followed.y)),
                      std::as_writable_bytes(std::span(followed.material))};
  for (const auto part : parts) {
    if (bytes.size() < part.size()) return nullptr;
    std::ranges::copy(bytes.first(part.size()), part.begin());
    bytes = bytes.subspan(part.size());
  }
  for (std::size_t i = 0; i < points; ++i)
    if (!lies_in(image, followed.x[i], followed.y[i]) || !makes_sense(followed.material[i])) return nullptr;
  return bytes.empty() ? std::make_shared<const HostPositions>(std::move(followed)) : nullptr;
}

/// Reads the points of a state; empty if the state does not have this number of points.
core::RawVector<RefinedPoint> points_of(std::span<const std::byte> state, std::int64_t points,
                                        LostMemory& memory) {
  core::RawVector<RefinedPoint> last(points);
  if (state.size() != sizeof memory + last.size() * sizeof(RefinedPoint)) return {};
  std::memcpy(last.data(), state.data() + sizeof memory, last.size() * sizeof(RefinedPoint));
  if (!std::ranges::all_of(last, [](const RefinedPoint& point) { return makes_sense(point); })) return {};
  LostMemory saved;
  std::memcpy(&saved, state.data(), sizeof saved);
  if (!makes_sense(saved, points)) return {};
  memory = saved;
  return last;
}

class CpuMeasurement final : public Measurement {
 public:
  CpuMeasurement(const PointNodes& points, Size image, MeasuredFrame measured)
      : points_(points), image_(image), measured_(std::move(measured)) {}

  std::shared_ptr<const PointPositions> positions() override {
    return std::make_shared<HostPositions>(LocatedPoints(points_, measured_.result.field, image_));
  }
  PointCounts counts() override {
    const NodeValues<Status>& status = measured_.result.field.status;
    return {std::ranges::count_if(status, has_values), std::ranges::count_if(status, is_lost)};
  }

 private:
  MeasuredFrame read() override { return std::move(measured_); }

  const PointNodes& points_;
  Size image_;
  MeasuredFrame measured_;
};

class CpuReference final : public ActiveReference {
 public:
  CpuReference(Shared& shared, std::shared_ptr<const Frame> reference, Subsets subsets,
               core::RawVector<RefinedPoint> last)
      : shared_(shared),
        reference_(std::move(reference), std::move(subsets), shared.options, shared.analysis.largest_motion,
                   shared.pool) {
    reference_.last = std::move(last);
    reference_noise_ = noise_of(reference_.image());
    shared_.kernels.insert(reference_.refiner.kernel());
  }

  const core::RawVector<RefinedPoint>& last() const { return reference_.last; }

  bool surely_found() const override { return surely_found_; }

  std::unique_ptr<Measurement> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                       const NextFrame&) override {
    const ImageView image = static_cast<const HostFrame&>(*current).image;
    const auto check_stop = [&] {
      if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
    };
    FrameResult measured;
    Stopwatch watch;
    const auto begin = std::chrono::steady_clock::now();
    reference_.refiner.set_current(image);
    measured.seconds.prepare = watch.lap();
    measure_whole_subsets(image, stop, check_stop, watch, measured.seconds);
    const std::span<RefinedPoint> results = shared_.memory.results;
    // The next frame starts from the results of whole subsets, as on a GPU, which searches it while it
    // measures parts of subsets.
    ++frames_;
    is_last() ? reference_.last.clear() : keep_as_last(results);
    if (shared_.options.split)
      SplitSubsets(shared_.points, reference_, shared_.options.step, results).run(stop);
    ChanceMatches(shared_.points, reference_, shared_.analysis.alternatives, shared_.options.step, results)
        .reject();
    mark_out_of_image(shared_.points, reference_, results);
    measured.noise = estimate_noise(results);
    measured.field =
        field_of(results, analysis::noise_model(shared_.options, image,
                                                {reference_noise_, noise_of(image), !current->suspicious}));
    if (shared_.options.keep_state) measured.state = state_of(reference_.last, lost_);
    measured.seconds.refine = watch.lap();
    fields::mark_outliers(measured.field, shared_.options.outliers, shared_.pool);
    const bool has_strain = shared_.strain_by == StrainBy::backend;
    if (has_strain) measured.field.strain = strain_of(measured.field, shared_.options, shared_.pool);
    measured.seconds.strain = watch.lap();
    const StageSeconds& seconds = measured.seconds;
    add_spans(measured.spans, begin,
              {{"prefilter", seconds.prepare},
               {"search", seconds.search},
               {"refine", seconds.refine},
               {"strain", seconds.strain}});
    return std::make_unique<CpuMeasurement>(shared_.points, image.size(),
                                            MeasuredFrame{std::move(measured), has_strain});
  }

  bool restore(std::span<const std::byte> state) override {
    auto last = points_of(state, reference_.size(), lost_);
    if (last.empty()) return false;
    reference_.last = std::move(last);
    return true;
  }

  bool start_from(const ActiveReference& other) override {
    const auto* of_cpu = dynamic_cast<const CpuReference*>(&other);
    if (!of_cpu || std::ssize(of_cpu->last()) != reference_.size()) return false;
    reference_.last = of_cpu->last();
    return true;
  }
  void limit_effort(std::span<const Effort> efforts) override { reference_.limit_effort(efforts); }
  void look_near(const PossiblePlaces& places) override { reference_.look_near(places); }

 private:
  /// Measures all points with whole subsets; results go to shared_.memory.
  void measure_whole_subsets(const ImageView& image, const std::stop_token& stop,
                             const std::function<void()>& check_stop, Stopwatch& watch,
                             StageSeconds& seconds) {
    StartSearch search(shared_.points, reference_, image, shared_.correlator, shared_.options.search,
                       check_stop, shared_.kernels, shared_.memory.results);
    begin_start_search(search, lost_);
    const NotFound not_found = finish_start_search(search, lost_, [] {});
    seconds.search = watch.lap();
    PointRefinement refinement(shared_.points, reference_, image, search.starts(), shared_.memory, stop,
                               check_stop, shared_.options.step);
    refinement.start_over();
    const bool many_not_found = finish_refinement(refinement, search, not_found, lost_);
    surely_found_ = search.automatic() && !many_not_found;
  }

  /// True if no further frame is likely to follow.
  bool is_last() const {
    const TrackOptions& options = shared_.options;
    return frames_ == options.expected_frames && !options.keep_state &&
           options.reference_strategy == ReferenceStrategy::first;
  }

  void keep_as_last(std::span<const RefinedPoint> results) {
    reference_.last.resize(results.size());
    core::for_each_index(shared_.pool, reference_.size(),
                         [&](std::int64_t i) { reference_.last[i] = results[i]; });
  }

  double estimate_noise(std::span<const RefinedPoint> results) const {
    const TrackOptions& options = shared_.options;
    if (options.noise) return *options.noise;
    const NoiseGains gains = analysis::noise_gains(options.refine.interpolation, options.refine.smoothing);
    const std::vector<std::int64_t> measured = core::indices_where(
        shared_.pool, std::ssize(results), [&](std::int64_t i) { return results[i].status == Status::ok; });
    if (measured.empty()) return 0;
    core::RawVector<double> sigmas(measured.size());
    core::for_each_index(shared_.pool, std::ssize(measured), [&](std::int64_t k) {
      const RefinedPoint& p = results[measured[k]];
      sigmas[k] = noise_from_residual(gains, p.shape, p.residual_sd, options.refine.subset / 2);
    });
    const auto middle = sigmas.begin() + static_cast<std::ptrdiff_t>(sigmas.size() / 2);
    std::nth_element(sigmas.begin(), middle, sigmas.end());
    return *middle;
  }

  double noise_of(const ImageView& image) const {
    return analysis::image_noise(image, shared_.analysis.noise_patches, shared_.pool);
  }

  Field field_of(std::span<const RefinedPoint> results, const NoiseModel& noise) const {
    Field field(shared_.points.shared_grid);
    const Grid& grid = shared_.points.grid;
    const FramePoints points{shared_.points, reference_, results};
    const auto cross = [&](std::int64_t node) {
      return cross_around(grid.nx, grid.ny, shared_.points.point_at.data(), node, noise.reach);
    };
    const auto material = [&](std::int64_t i) { return reference_.subsets.material(i); };
    const auto around = [&](std::int64_t node) {
      return NodesAround<std::int64_t>{grid.nx, grid.ny, shared_.points.point_at.data(), node};
    };
    const auto bend_of_all = [&](std::int64_t node, std::int64_t i) {
      return BendOfSteps(points, i, material, noise)(around(node));
    };
    core::for_each_index(shared_.pool, reference_.size(), [&](std::int64_t i) {
      const RefinedPoint& p = results[i];
      const MaterialPoint m = reference_.subsets.material(i);
      const std::int64_t node = shared_.points.node_of[i];
      field.status[node] = p.status;
      field.iterations[node] = p.iterations;
      if (p.status != Status::ok) return;
      const Components bend = noise.order > 0 ? bend_at(points, i, cross(node), noise) : Components{};
      const Components all = noise.order > 0 ? bend_of_all(node, i) : Components{};
      const Sigmas sigmas = sigmas_of(m, p, p.shape, noise, bend, all);
      const bool certain =
          is_certain(sigmas) || is_certain_by_neighbours(points, i, around(node), sigmas, noise);
      field.status[node] =
          certain ? status_of(points.x(i), points.y(i), m, p.shape, sigmas, noise) : Status::low_correlation;
      if (field.status[node] != Status::ok) return;
      field.u[node] = m.u + p.shape.u_at(m.dx, m.dy);
      field.v[node] = m.v + p.shape.v_at(m.dx, m.dy);
      field.zncc[node] = p.zncc;
      field.sigma_u[node] = sigmas.u;
      field.sigma_v[node] = sigmas.v;
    });
    return field;
  }

  Shared& shared_;
  HostReference reference_;
  double reference_noise_;  ///< noise of the reference, see image_noise
  LostMemory lost_;
  bool surely_found_ = false;
  std::int64_t frames_ = 0;  ///< number of frames measured so far
};

class CpuBackend final : public TrackingBackend {
 public:
  CpuBackend(const TrackOptions& options, const MeasuredScene& scene, StrainBy strain_by,
             core::ThreadPool& pool)
      : shared_(options, scene, strain_by, pool) {}

  std::shared_ptr<const Frame> take(ImageView image) override { return std::make_shared<HostFrame>(image); }
  std::shared_ptr<const PointPositions> place(const Points& points) override {
    return std::make_shared<HostPositions>(LocatedPoints(points, shared_.image));
  }
  std::unique_ptr<ActiveReference> make_reference(std::shared_ptr<const Frame> image,
                                                  const PointPositions& positions,
                                                  const ActiveReference* before) override {
    const LocatedPoints& points = static_cast<const HostPositions&>(positions).points;
    return std::make_unique<CpuReference>(
        shared_, std::move(image), Subsets(shared_.points, points, shared_.analysis.roi),
        before ? static_cast<const CpuReference*>(before)->last() : core::RawVector<RefinedPoint>());
  }
  std::shared_ptr<const PointPositions> load_positions(std::span<const std::byte> bytes) const override {
    return positions_in(bytes, shared_.points.node_of.size(), shared_.image);
  }
  std::vector<std::string> kernels() const override {
    return {shared_.kernels.begin(), shared_.kernels.end()};
  }
  std::string device() const override { return "cpu"; }

 private:
  Shared shared_;
};

}  // namespace

std::unique_ptr<TrackingBackend> open_cpu(const TrackOptions& options, const MeasuredScene& scene,
                                          StrainBy strain_by, core::ThreadPool& pool) {
  return std::make_unique<CpuBackend>(options, scene, strain_by, pool);
}

}  // namespace dic::track

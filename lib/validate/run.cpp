#include <chrono>
#include <cmath>
#include <ctime>
#include <dic/error.hpp>
#include <dic/info.hpp>

#include "core/parallel.hpp"
#include "validate/validate.hpp"

namespace dic::validation {
namespace {

/// A frame of a scene and what is needed to judge its field.
struct View {
  const Scene& scene;
  const Case& one;
  const TrackOptions& options;
  Size size;
  int frame = 1;

  /// True if (x, y) is inside the reference and the region of interest.
  bool inside(double x, double y) const {
    const Roi::Rect area = one.roi.value_or(Roi::Rect{0, 0, size.width, size.height});
    return x >= area.x && y >= area.y && x <= area.x + area.width - 1 && y <= area.y + area.height - 1;
  }
  /// True if the reference shows material of this body at (x, y) that the frame shows too, not hidden by
  /// glare.
  bool seen(double x, double y, int body) const {
    if (!inside(x, y)) return false;
    const auto truth = scene.truth(frame, x, y);
    return truth && truth->measurable == Measurable::yes && truth->body == body;
  }
};

/// The part of a subset that belongs to its point.
enum class Seen : std::uint8_t { less_than_half, part, all };

Seen seen_of_subset(const View& view, int x, int y, int body) {
  if (!view.scene.known_between) return Seen::all;
  const int half = view.options.refine.subset / 2;
  const bool corners = view.seen(x - half, y - half, body) && view.seen(x + half, y - half, body) &&
                       view.seen(x - half, y + half, body) && view.seen(x + half, y + half, body);
  if (corners) return Seen::all;
  // The samples are the middles of equal cells, so that the area up to the centre is exactly half.
  constexpr int kSide = 10;
  const double apart = (2.0 * half + 1) / kSide, first = -half - 0.5 + 0.5 * apart;
  int seen = 0;
  for (int j = 0; j < kSide; ++j)
    for (int i = 0; i < kSide; ++i) seen += view.seen(x + first + apart * i, y + first + apart * j, body);
  return 2 * seen >= kSide * kSide ? Seen::part : Seen::less_than_half;
}

/// True if a subset contains another body outside its innermost 5 px: beside a crack or an edge, which is
/// equally far away in the frame.
bool beside_edge(const View& view, int x, int y, int body) {
  const MotionKind kind = view.scene.motion ? view.scene.motion->kind : MotionKind::translation;
  if (kind != MotionKind::crack && kind != MotionKind::bodies) return false;
  const int half = view.options.refine.subset / 2;
  const auto all_around = [&](int distance, const auto& holds) {
    for (const auto& [dx, dy] : {std::pair{distance, 0}, {-distance, 0}, {0, distance}, {0, -distance}})
      if (!holds(x + dx, y + dy)) return false;
    return true;
  };
  const bool one_body =
      all_around(half, [&](int px, int py) { return view.scene.motion->body(px, py) == body; });
  return !one_body && all_around(4, [&](int px, int py) { return view.seen(px, py, body); });
}

/// True strain at (x, y) of a motion without jumps, in the measure of the options.
std::optional<std::array<double, 3>> true_strain(const View& view, double x, double y) {
  if (!view.scene.motion) return std::nullopt;
  const Motion& m = *view.scene.motion;
  if (m.kind == MotionKind::crack || m.kind == MotionKind::bodies || m.kind == MotionKind::ramp)
    return std::nullopt;
  constexpr double kApart = 0.01;  // px: the error of the differences is below 1e-9
  const double amount = view.scene.amounts[view.frame];
  const auto slope = [&](double dx, double dy) {
    const auto before = m.at(x - dx, y - dy, amount), after = m.at(x + dx, y + dy, amount);
    return std::array{(after[0] - before[0]) / (2 * kApart), (after[1] - before[1]) / (2 * kApart)};
  };
  const auto [ux, vx] = slope(kApart, 0);
  const auto [uy, vy] = slope(0, kApart);
  return strain_from_gradient({ux, uy, vx, vy}, view.options.strain.measure);
}

JudgedPoint judged_point(const View& view, const Field& field, int i, int j, const Truth& truth) {
  const Grid& grid = field.grid();
  const std::int64_t k = static_cast<std::int64_t>(j) * grid.nx + i;
  const int x = grid.x(i), y = grid.y(j);
  JudgedPoint p;
  p.status = field.status[k];
  p.u = field.u[k];
  p.v = field.v[k];
  p.sigma_u = field.sigma_u[k];
  p.sigma_v = field.sigma_v[k];
  p.true_u = truth.u;
  p.true_v = truth.v;
  p.truth_error = view.scene.truth_error;
  p.measurable = truth.measurable;
  const int distance = std::min(std::min(x, view.size.width - 1 - x), std::min(y, view.size.height - 1 - y));
  p.in_region = distance >= view.one.region.nearest && distance <= view.one.region.farthest;
  if (view.one.region.farthest_from_hole) {
    const Motion& m = *view.scene.motion;
    const double from_hole = std::hypot(x - m.cx, y - m.cy) - m.radius;
    p.in_region = p.in_region && from_hole > 0 && from_hole <= *view.one.region.farthest_from_hole;
  }
  if (view.one.roi) {  // the region of interest cuts subsets as the border does
    const int half = view.options.refine.subset / 2;
    p.in_region = p.in_region && view.inside(x - half, y - half) && view.inside(x + half, y + half);
  }
  if (truth.measurable != Measurable::no) {
    const Seen seen = seen_of_subset(view, x, y, truth.body);
    p.expected = view.one.whole_subsets ? seen == Seen::all : seen != Seen::less_than_half;
    p.near_edge = p.expected && beside_edge(view, x, y, truth.body);
  }
  const StrainField& strain = field.strain;
  if (const auto expected = true_strain(view, x, y); expected && !std::isnan(strain.exx[k])) {
    p.has_strain = true;
    const float measured[] = {strain.exx[k], strain.eyy[k], strain.exy[k]};
    for (int c = 0; c < 3; ++c) p.strain_error[c] = static_cast<float>(measured[c] - (*expected)[c]);
    p.strain_sigma = {strain.sigma_exx[k], strain.sigma_eyy[k], strain.sigma_exy[k]};
  }
  return p;
}

Metrics judge(const View& view, const Field& field, core::ThreadPool& pool) {
  const Grid& grid = field.grid();
  std::vector<std::vector<JudgedPoint>> rows(grid.ny);
  pool.parallel_for(grid.ny, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t j = begin; j < end; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const int row = static_cast<int>(j);
        if (grid.inside[j * grid.nx + i] == 0) continue;
        if (const auto truth = view.scene.truth(view.frame, grid.x(i), grid.y(row)))
          rows[j].push_back(judged_point(view, field, i, row, *truth));
      }
  });
  Judge judge;
  for (const auto& row : rows)
    for (const JudgedPoint& point : row) judge.add(point);
  return judge.metrics();
}

TrackOptions options_of(const Case& one, const Options& options) {
  TrackOptions track = options.track;
  const Variant& v = one.variant;
  const Asked& asked = options.asked;
  if (v.subset && !asked.subset) track.refine.subset = *v.subset;
  if (v.order && !asked.order) track.refine.order = *v.order;
  if (v.step && !asked.step) track.step = *v.step;
  if (v.strain_window && !asked.strain_window) track.strain.window = *v.strain_window;
  if (v.interpolation && !asked.interpolation) track.refine.interpolation = *v.interpolation;
  if (v.strategy && !asked.strategy) track.reference_strategy = *v.strategy;
  return track;
}

bool has_periods(const Scene& scene) {
  return scene.motion && (scene.motion->kind == MotionKind::star || scene.motion->kind == MotionKind::chirp);
}

void measure_parts(const Case& one, const Options& options, CaseResult& result, const std::stop_token& stop) {
  const Scene scene = one.scene();
  result.origin = scene.origin;
  result.device = "cpu";
  const Image reference = scene.image(0), current = scene.image(1);
  const auto start = std::chrono::steady_clock::now();
  result.total = judge_parts(one, reference, current, *scene.motion, options, stop);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.frames = {result.total};
  result.broken = broken_bounds(one.bounds, result.total, {});
}

void measure_pairs(const Case& one, CaseResult& result, core::ThreadPool& pool, const std::stop_token& stop) {
  result.origin = one.scene().origin;
  result.stereo_bounds = one.stereo->bounds;
  const StereoJudgement judgement = measure_stereo(*one.stereo, result.options, pool, stop);
  const StereoMetrics& metrics = judgement.metrics;
  result.options = judgement.options;
  result.device = judgement.device;
  result.seconds = judgement.seconds;
  result.stereo = metrics;
  Metrics& total = result.total;
  total.points = metrics.points, total.ok = metrics.ok;
  total.measurable = metrics.expected, total.lost = metrics.lost;
  total.false_ok = metrics.wrong, total.hidden_ok = metrics.hidden;
  result.broken = broken_bounds(one.stereo->bounds, metrics);
}

void measure(const Case& one, CaseResult& result, core::ThreadPool& pool, const std::stop_token& stop) {
  const Scene scene = one.scene();
  result.origin = scene.origin;
  const Image reference = scene.image(0);
  Roi roi;
  roi.rect = one.roi;
  auto start = std::chrono::steady_clock::now();
  const auto stop_clock = [&] {
    result.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Tracker tracker(result.options, reference, roi);
  result.options = tracker.options();  // includes the values chosen from the reference
  stop_clock();
  result.device = tracker.device();
  double still_sd = 0;
  for (int frame = 1; frame < scene.frames; ++frame) {
    const Image current = scene.image(frame);
    start = std::chrono::steady_clock::now();
    const Field field = tracker.track(current, stop).field;
    stop_clock();
    const Metrics metrics = judge({scene, one, result.options, reference.size(), frame}, field, pool);
    if (frame < one.first_judged) {
      still_sd = scene.motion->kind == MotionKind::star ? metrics.sd[1] : metrics.sd[0];
      continue;
    }
    result.frames.push_back(metrics);
    if (has_periods(scene)) {
      const int half = result.options.refine.subset / 2;
      Resolution resolution{transfer_of(*scene.motion, scene.amounts[frame], field, half), 0, still_sd};
      resolution.spatial = period_of_loss(resolution.curve);
      result.resolution = resolution;
    }
  }
  result.total = combined(result.frames);
  result.broken = broken_bounds(one.bounds, result.total, result.resolution);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

CaseResult run_case(const Suite& suite, const Case& one, const Options& options, core::ThreadPool& pool,
                    const std::stop_token& stop) {
  CaseResult result;
  result.suite = suite.name;
  result.name = one.name;
  result.bounds = one.bounds;
  result.parameter = one.parameter;
  result.parameter_value = one.parameter_value;
  result.options = options_of(one, options);
  try {
    if (one.stereo)
      measure_pairs(one, result, pool, stop);
    else if (!one.parts.empty())
      measure_parts(one, options, result, stop);
    else
      measure(one, result, pool, stop);
  } catch (const UsageError& e) {
    result.failure = e.what();
  } catch (const FileError& e) {
    result.failure = e.what();
  }
  return result;
}

}  // namespace

CaseResult run_case(const Suite& suite, const Case& one, const Options& options, std::stop_token stop) {
  core::ThreadPool pool(options.track.threads);
  return run_case(suite, one, options, pool, stop);
}

std::int64_t Report::broken() const {
  return std::ranges::count_if(cases, [](const CaseResult& one) { return !one.holds(); });
}

Report run(const std::vector<Suite>& suites, const Options& options, const std::string& command,
           const std::function<void(const Suite&, const CaseResult&)>& on_case, std::stop_token stop) {
  Report report{version(), today(), command, options.quick, options.seed, {}};
  core::ThreadPool pool(options.track.threads);
  for (const Suite& suite : suites)
    for (const Case& one : suite.cases(options)) {
      if (stop.stop_requested()) throw Cancelled("The validation was cancelled.");
      report.cases.push_back(run_case(suite, one, options, pool, stop));
      if (on_case) on_case(suite, report.cases.back());
    }
  return report;
}

}  // namespace dic::validation

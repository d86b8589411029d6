#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <dic/track.hpp>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "track/anchor.hpp"
#include "track/noise.hpp"

namespace dic {
namespace {

constexpr int kAutoRange = 2;        // px around a prediction that comes from a pyramid or the frame before
constexpr int kAutoSteps = 8;        // times a peak on the border may be followed
constexpr float kRecognized = 0.5f;  // zncc at whole pixels of a subset that was surely found
/// Refinement begins where the search was surest, and goes on from what is measured; below the last rung a
/// start is not worth its iterations.
constexpr float kScoreLadder[] = {0.8f, 0.65f, kRecognized, 0.3f};
constexpr double kManyLost = 0.02;  // share of points not recognized that calls for the pyramid
constexpr double kSteep = 0.05;     // gradient of the coarse field that is more than its noise
constexpr double kReanchor = 0.9;   // share of the anchor's points that must survive (strategy automatic)
constexpr float kCertain = 0.9f;    // zncc of a point that needs no neighbour to be believed
constexpr std::size_t kSmallIsland = 12;  // points that agree only among themselves
constexpr double kAgreement = 2.0;        // px between a point and what a neighbour's shape says of it
constexpr std::size_t kBatch = 1 << 18;   // refinements at once: fills a GPU, and 30 MB of results
constexpr int kMaxRounds = 1000;          // of recovery; each passes the front on by one point

class Stopwatch {
 public:
  /// Seconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(begin_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Where the refinement of a point begins.
struct Start {
  ShapeParameters shape;
  float score = -1;
};

/// Refinements to be done, each of another point.
struct Attempts {
  std::vector<std::int64_t> points;
  std::vector<ShapeParameters> starts;

  void add(std::int64_t point, const ShapeParameters& start) {
    points.push_back(point);
    starts.push_back(start);
  }
};

/// The shape function of a neighbour, continued to a point (dx, dy) px away from it.
ShapeParameters continued(const ShapeParameters& s, double dx, double dy) {
  ShapeParameters out = s;
  out.u = s.u_at(dx, dy);
  out.v = s.v_at(dx, dy);
  out.ux += s.uxx * dx + s.uxy * dy;
  out.uy += s.uxy * dx + s.uyy * dy;
  out.vx += s.vxx * dx + s.vxy * dy;
  out.vy += s.vxy * dx + s.vyy * dy;
  return out;
}

Prediction rounded(double u, double v) {
  return {static_cast<int>(std::lround(u)), static_cast<int>(std::lround(v))};
}

std::string chosen_device(const std::string& device) {
  if (device == "cuda:all")
    throw DeviceError(
        "Tracking on several GPUs at once is not supported yet; choose --device cuda or cuda:N.");
  // `auto` stays on the CPU until the whole pipeline can stay on the GPU.
  return device == "auto" ? "cpu" : device;
}

bool everywhere(const Image& mask) {
  for (int y = 0; y < mask.height(); ++y) {
    const std::uint8_t* row = mask.row<std::uint8_t>(y);
    if (std::find(row, row + mask.width(), 0) != row + mask.width()) return false;
  }
  return true;
}

}  // namespace

std::string_view to_string(ReferenceStrategy strategy) {
  switch (strategy) {
    case ReferenceStrategy::first:
      return "first";
    case ReferenceStrategy::previous:
      return "previous";
    case ReferenceStrategy::automatic:
      break;
  }
  return "auto";
}

std::vector<std::string> TrackOptions::problems() const {
  std::vector<std::string> out = refine.problems();
  if (step < 1) out.push_back("The step between points must be at least 1 px.");
  if (search < -1 || search > 4096) out.push_back("The search range must be auto or from 0 to 4096 px.");
  if (!(noise >= 0) && noise != -1)
    out.push_back("The noise must be 0 grey levels or more, or -1 to estimate it.");
  if (threads < 0) out.push_back("The number of threads must be 0 (one per core) or more.");
  const auto strain_problems = strain.problems();
  out.insert(out.end(), strain_problems.begin(), strain_problems.end());
  return out;
}

struct Tracker::Impl {
  TrackOptions options;
  Grid grid;
  int width, height;
  ScalarType type;
  std::string device;  ///< of search and refinement
  Correlator correlator;
  std::vector<std::int64_t> node_of;   // grid node of every point
  std::vector<std::int64_t> point_at;  // point of every grid node; -1 outside the ROI
  std::vector<int> node_x, node_y;     // points in the original reference
  Image roi;                           // empty where it is the whole frame
  std::unique_ptr<Anchor> anchor;
  Image last_picture;  // kept for the strategies that may need it as the next reference
  Field last_field{0};
  StageSeconds seconds;
  std::set<std::string> variants;
  double noise = 0;
  std::stop_token stop;

  Impl(const TrackOptions& o, ImageView reference, const Roi& region)
      : options(o),
        width(reference.width),
        height(reference.height),
        type(reference.type),
        device(chosen_device(o.device)),
        correlator(device, o.threads) {
    Stopwatch watch;
    roi = rasterize(region, width, height);
    grid = make_grid(roi, options.step);
    if (everywhere(roi)) roi = {};
    collect_points();
    anchor = std::make_unique<Anchor>(reference, roi.empty() ? Image() : copy_of(roi), node_x, node_y,
                                      std::vector<MaterialPoint>{}, options.refine, options.threads, device);
    seconds.prepare += watch.lap();
  }

  void collect_points() {
    point_at.assign(grid.nodes(), -1);
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::int64_t node = static_cast<std::int64_t>(j) * grid.nx + i;
        if (!grid.inside[node]) continue;
        point_at[node] = static_cast<std::int64_t>(node_of.size());
        node_of.push_back(node);
        node_x.push_back(grid.x(i));
        node_y.push_back(grid.y(j));
      }
  }

  void check_stop() const {
    if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
  }

  /// Calls visit(point) for the up to 8 neighbours of a point on the grid.
  template <typename Visit>
  void visit_neighbours(std::int64_t point, const Visit& visit) const {
    const int i = static_cast<int>(node_of[point] % grid.nx), j = static_cast<int>(node_of[point] / grid.nx);
    for (int b = std::max(0, j - 1); b <= std::min(grid.ny - 1, j + 1); ++b)
      for (int a = std::max(0, i - 1); a <= std::min(grid.nx - 1, i + 1); ++a) {
        const std::int64_t neighbour = point_at[static_cast<std::int64_t>(b) * grid.nx + a];
        if (neighbour >= 0 && neighbour != point) visit(neighbour);
      }
  }

  /// The shape of point `from`, continued to point `to`.
  ShapeParameters between(const ShapeParameters& shape, std::int64_t from, std::int64_t to) const {
    return continued(shape, anchor->x[to] - anchor->x[from], anchor->y[to] - anchor->y[from]);
  }

  // ---- integer search ----

  std::vector<FoundShift> search_around(ImageView current, std::span<const std::int64_t> which,
                                        std::span<const Prediction> predictions, int range) {
    check_stop();
    auto found = anchor->search->around(correlator, current, which, predictions, range);
    if (!which.empty()) variants.insert(correlator.last_plan().variant);
    return found;
  }

  /// Searches `which` from the shapes in `starts` and writes what was found there. In automatic range, peaks
  /// on the border of the searched rectangle are followed.
  void search_from(ImageView current, std::vector<std::int64_t> which, std::vector<Start>& starts) {
    const bool automatic = options.search < 0;
    const int range = automatic ? kAutoRange : options.search;
    std::vector<Prediction> predictions;
    for (std::int64_t i : which) predictions.push_back(rounded(starts[i].shape.u, starts[i].shape.v));
    for (int step = 0; step <= kAutoSteps && !which.empty(); ++step) {
      const auto found = search_around(current, which, predictions, range);
      std::vector<std::int64_t> again;
      std::vector<Prediction> moved;
      for (std::size_t k = 0; k < which.size(); ++k) {
        Start& start = starts[which[k]];
        if (found[k].score <= start.score) continue;
        start.shape.u = found[k].u;
        start.shape.v = found[k].v;
        start.score = found[k].score;
        if (!automatic || !found[k].at_border) continue;
        again.push_back(which[k]);
        moved.push_back(rounded(found[k].u, found[k].v));
      }
      which = std::move(again);
      predictions = std::move(moved);
    }
  }

  void start_from_coarse(const CoarseField& field, std::span<const std::int64_t> which,
                         std::vector<Start>& starts) {
    for (std::int64_t i : which) {
      const CoarseShift s = field.at(anchor->x[i], anchor->y[i]);
      Start start;
      start.shape.u = s.u;
      start.shape.v = s.v;
      if (std::max({std::abs(s.ux), std::abs(s.uy), std::abs(s.vx), std::abs(s.vy)}) > kSteep) {
        start.shape.ux = s.ux;
        start.shape.uy = s.uy;
        start.shape.vx = s.vx;
        start.shape.vy = s.vy;
      }
      starts[i] = start;
    }
  }

  CoarseField run_coarse(ImageView current) {
    check_stop();
    CoarseField field = anchor->coarse().run(correlator, current);
    variants.insert(correlator.last_plan().variant);
    return field;
  }

  /// Starts the points of the frame before where they were then; returns the points that have no such start.
  std::vector<std::int64_t> start_from_last(std::span<const std::int64_t> points,
                                            std::vector<Start>& starts) const {
    std::vector<std::int64_t> without;
    for (std::int64_t i : points) {
      const RefinedPoint* best = nullptr;
      std::int64_t from = i;
      const auto consider = [&](std::int64_t k) {
        const RefinedPoint& candidate = anchor->last[k];
        if (candidate.status != Status::ok || (best && best->zncc >= candidate.zncc)) return;
        best = &candidate;
        from = k;
      };
      if (!anchor->last.empty()) {
        consider(i);
        if (!best) visit_neighbours(i, consider);
      }
      if (best)
        starts[i].shape = between(best->shape, from, i);
      else
        without.push_back(i);
    }
    return without;
  }

  std::vector<Start> find_starts(ImageView current) {
    std::vector<Start> starts(anchor->size());
    std::vector<std::int64_t> points;
    for (std::int64_t i = 0; i < anchor->size(); ++i)
      if (anchor->trackable(i)) points.push_back(i);
    const bool automatic = options.search < 0;
    const auto without = start_from_last(points, starts);
    const bool coarse_first = automatic && !points.empty() && without.size() > kManyLost * points.size();
    if (coarse_first) start_from_coarse(run_coarse(current), without, starts);
    search_from(current, points, starts);
    if (!automatic || without.size() == points.size()) return starts;
    // The motion since the last frame may have been too large to follow.
    std::vector<std::int64_t> lost;
    for (std::int64_t i : points)
      if (starts[i].score < kRecognized) lost.push_back(i);
    if (lost.size() <= kManyLost * points.size()) return starts;
    std::vector<Start> retry = starts;
    start_from_coarse(run_coarse(current), lost, retry);
    search_from(current, lost, retry);
    for (std::int64_t i : lost)
      if (retry[i].score > starts[i].score) starts[i] = retry[i];
    return starts;
  }

  // ---- refinement ----

  RefinedPoint unrefined(std::int64_t i, const Start& start) const {
    RefinedPoint out;
    out.status = anchor->reference_status(i);
    if (out.status == Status::ok) out.status = Status::low_correlation;
    out.zncc = std::max(0.0f, start.score);
    return out;
  }

  /// Refines every point from its own start, the surely found ones first: in steep deformations the others
  /// are better off with the shape of a measured neighbour.
  std::vector<RefinedPoint> refine_all(const std::vector<Start>& starts) {
    std::vector<RefinedPoint> points(starts.size());
    for (std::int64_t i = 0; i < anchor->size(); ++i) points[i] = unrefined(i, starts[i]);
    float tried = std::numeric_limits<float>::infinity();
    for (const float least : kScoreLadder) {
      Attempts attempts;
      for (std::int64_t i = 0; i < anchor->size(); ++i)
        if (points[i].status != Status::ok && anchor->trackable(i) && starts[i].score >= least &&
            starts[i].score < tried)
          attempts.add(i, starts[i].shape);
      tried = least;
      recover(points, refine_attempts(attempts, points));
    }
    return points;
  }

  /// Makes the attempts and keeps what is better than what is known. Returns the points that are measured
  /// now.
  std::vector<std::int64_t> refine_attempts(const Attempts& attempts, std::vector<RefinedPoint>& points) {
    std::vector<std::int64_t> fresh;
    std::vector<RefinedPoint> results;
    const std::span which(attempts.points);
    const std::span starts(attempts.starts);
    for (std::size_t first = 0; first < which.size(); first += kBatch) {
      const std::size_t count = std::min(kBatch, which.size() - first);
      check_stop();
      results.resize(count);
      anchor->refiner.refine(which.subspan(first, count), starts.subspan(first, count), results, stop);
      check_stop();
      for (std::size_t k = 0; k < count; ++k)
        if (accept(points[which[first + k]], results[k])) fresh.push_back(which[first + k]);
    }
    return fresh;
  }

  /// True where the point is measured by the result.
  static bool accept(RefinedPoint& known, const RefinedPoint& result) {
    if (result.status != Status::ok && known.iterations > 0) return false;
    if (known.status == Status::ok && result.zncc <= known.zncc) return false;
    known = result;
    return known.status == Status::ok;
  }

  /// Refines lost and contested points again from the shape of a measured neighbour, wave by wave from the
  /// `fresh` ones (the idea of reliability-guided DIC, Pan 2009). Deterministic: a wave sees only the waves
  /// before.
  void recover(std::vector<RefinedPoint>& points, std::vector<std::int64_t> fresh) {
    for (int round = 0; round < kMaxRounds && !fresh.empty(); ++round) {
      fresh = refine_attempts(front(points, fresh), points);
    }
  }

  /// Points beside `fresh` ones that are lost or contradict a better one, each with the shape of its best
  /// measured neighbour.
  Attempts front(const std::vector<RefinedPoint>& points, const std::vector<std::int64_t>& fresh) const {
    std::set<std::int64_t> wanted;
    for (std::int64_t i : fresh)
      visit_neighbours(i, [&](std::int64_t n) {
        if (!anchor->trackable(n)) return;
        const bool doubtful = points[n].zncc < std::min(kCertain, points[i].zncc);
        if (points[n].status != Status::ok || (doubtful && !agree(points, i, n))) wanted.insert(n);
      });
    Attempts out;
    for (std::int64_t i : wanted) {
      std::int64_t best = -1;
      visit_neighbours(i, [&](std::int64_t n) {
        if (points[n].status == Status::ok && (best < 0 || points[n].zncc > points[best].zncc)) best = n;
      });
      out.add(i, between(points[best].shape, best, i));
    }
    return out;
  }

  /// A refinement may settle on a wrong place with a fair zncc, and pass it on to its neighbours. Such points
  /// form small islands: what lies around them was lost, or contradicts them.
  void drop_unconfirmed(std::vector<RefinedPoint>& points) const {
    std::vector<bool> seen(points.size(), false);
    std::vector<std::int64_t> island;
    for (std::int64_t seed = 0; seed < anchor->size(); ++seed) {
      if (seen[seed] || points[seed].status != Status::ok || points[seed].zncc >= kCertain) continue;
      island.assign(1, seed);
      seen[seed] = true;
      bool contested = false, certain = false;
      for (std::size_t head = 0; head < island.size(); ++head)
        visit_neighbours(island[head], [&](std::int64_t n) {
          if (!anchor->trackable(n)) return;
          if (!agree(points, island[head], n))
            contested = true;
          else if (points[n].zncc >= kCertain)
            certain = true;
          else if (!seen[n]) {
            seen[n] = true;
            island.push_back(n);
          }
        });
      if (certain || !contested || island.size() > kSmallIsland) continue;
      for (std::int64_t i : island) points[i].status = Status::low_correlation;
    }
  }

  bool agree(const std::vector<RefinedPoint>& points, std::int64_t a, std::int64_t b) const {
    if (points[a].status != Status::ok || points[b].status != Status::ok) return false;
    const ShapeParameters s = between(points[a].shape, a, b);
    return std::hypot(s.u - points[b].shape.u, s.v - points[b].shape.v) <= kAgreement;
  }

  /// Tells points that left the picture from points that were not recognized: by where the nearest measured
  /// point (in steps on the grid) says they are.
  void explain_lost(std::vector<RefinedPoint>& points) const {
    std::vector<std::int64_t> source(points.size(), -1), queue;
    for (std::int64_t i = 0; i < anchor->size(); ++i)
      if (points[i].status == Status::ok) {
        source[i] = i;
        queue.push_back(i);
      }
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const std::int64_t from = source[queue[head]];
      visit_neighbours(queue[head], [&](std::int64_t n) {
        if (source[n] >= 0) return;
        source[n] = from;
        queue.push_back(n);
        if (anchor->trackable(n) && leaves(n, between(points[from].shape, from, n)))
          points[n].status = Status::out_of_image;
      });
    }
  }

  bool leaves(std::int64_t i, const ShapeParameters& shape) const {
    const double r = options.refine.subset / 2;
    const double x = anchor->x[i] + shape.u, y = anchor->y[i] + shape.v;
    return x - std::min<double>(r, anchor->x[i]) < -0.5 || y - std::min<double>(r, anchor->y[i]) < -0.5 ||
           x + std::min<double>(r, width - 1 - anchor->x[i]) > width - 0.5 ||
           y + std::min<double>(r, height - 1 - anchor->y[i]) > height - 0.5;
  }

  // ---- fields ----

  double estimate_noise(const std::vector<RefinedPoint>& points) const {
    if (options.noise >= 0) return options.noise;
    std::vector<double> sigmas;
    for (const RefinedPoint& p : points)
      if (p.status == Status::ok)
        sigmas.push_back(noise_from_residual(p, options.refine.interpolation, options.refine.subset / 2));
    if (sigmas.empty()) return 0;
    const auto middle = sigmas.begin() + static_cast<std::ptrdiff_t>(sigmas.size() / 2);
    std::nth_element(sigmas.begin(), middle, sigmas.end());
    return *middle;
  }

  Field field_of(const std::vector<RefinedPoint>& points, double sigma) const {
    Field field(grid.nodes());
    for (std::int64_t i = 0; i < anchor->size(); ++i) {
      const RefinedPoint& p = points[i];
      const MaterialPoint& m = anchor->material[i];
      const std::int64_t node = node_of[i];
      field.status[node] = p.status;
      field.iterations[node] = p.iterations;
      if (p.status != Status::ok) continue;
      field.u[node] = m.u + p.shape.u_at(m.dx, m.dy);
      field.v[node] = m.v + p.shape.v_at(m.dx, m.dy);
      field.zncc[node] = p.zncc;
      const double su = sigma * p.unit_sigma_u, sv = sigma * p.unit_sigma_v;
      field.sigma_u[node] = static_cast<float>(std::sqrt(m.variance_u + su * su));
      field.sigma_v[node] = static_cast<float>(std::sqrt(m.variance_v + sv * sv));
    }
    return field;
  }

  /// Compares a frame with the anchor. Sets `noise`.
  Field measure(ImageView current) {
    Stopwatch watch;
    anchor->refiner.set_current(current);
    seconds.prepare += watch.lap();
    const std::vector<Start> starts = find_starts(current);
    seconds.search += watch.lap();
    std::vector<RefinedPoint> points = refine_all(starts);
    drop_unconfirmed(points);
    explain_lost(points);
    noise = estimate_noise(points);
    Field field = field_of(points, noise);
    anchor->last = std::move(points);
    seconds.refine += watch.lap();
    return field;
  }

  // ---- reference strategy ----

  /// A new anchor at `picture`, in which the points lie as `field` says.
  std::unique_ptr<Anchor> anchor_at(ImageView picture, const Field& field) {
    Stopwatch watch;
    std::vector<MaterialPoint> material(node_of.size());
    for (std::size_t i = 0; i < material.size(); ++i) {
      const std::int64_t node = node_of[i];
      MaterialPoint& m = material[i];
      m.status = field.status[node] == Status::outlier ? Status::ok : field.status[node];
      if (m.status != Status::ok) continue;
      m.u = field.u[node];
      m.v = field.v[node];
      m.variance_u = field.sigma_u[node] * field.sigma_u[node];
      m.variance_v = field.sigma_v[node] * field.sigma_v[node];
    }
    auto next =
        std::make_unique<Anchor>(picture, roi.empty() ? Image() : moved_roi(roi, grid, field), node_x, node_y,
                                 std::move(material), options.refine, options.threads, device);
    seconds.prepare += watch.lap();
    return next;
  }

  static std::int64_t measured(const Field& field) {
    return std::count(field.status.begin(), field.status.end(), Status::ok);
  }

  /// Strategy automatic: where too many points are lost, the last frame becomes the reference, if that helps.
  Field measure_or_reanchor(ImageView current) {
    Field field = measure(current);
    std::int64_t trackable = 0;
    for (std::int64_t i = 0; i < anchor->size(); ++i) trackable += anchor->trackable(i);
    if (last_picture.empty() ||
        static_cast<double>(measured(field)) >= kReanchor * static_cast<double>(trackable))
      return field;
    const double noise_before = noise;
    auto before = std::exchange(anchor, anchor_at(last_picture, last_field));
    Field retried = measure(current);
    if (measured(retried) > measured(field)) return retried;
    anchor = std::move(before);
    noise = noise_before;
    return field;
  }

  Field track(ImageView current) {
    if (current.width != width || current.height != height || current.type != type)
      throw UsageError("The current picture must have the size and depth of the reference.");
    Field field = options.reference_strategy == ReferenceStrategy::automatic ? measure_or_reanchor(current)
                                                                             : measure(current);
    Stopwatch watch;
    if (options.outliers.enabled) mark_outliers(grid, field, options.outliers, options.threads);
    field.strain = compute_strain(grid, field, options.strain, options.threads);
    seconds.strain += watch.lap();
    if (options.reference_strategy == ReferenceStrategy::previous) anchor = anchor_at(current, field);
    if (options.reference_strategy == ReferenceStrategy::automatic) {
      last_picture = copy_of(current);
      last_field = field;
    }
    return field;
  }
};

namespace {

const TrackOptions& checked(const TrackOptions& options, ImageView reference) {
  const auto problems = options.problems();
  if (!problems.empty()) throw UsageError(problems.front());
  if (reference.empty()) throw UsageError("The reference picture is empty.");
  if (options.refine.subset > std::min(reference.width, reference.height))
    throw UsageError("The subset of " + std::to_string(options.refine.subset) +
                     " px is larger than the picture (" + std::to_string(reference.width) + "x" +
                     std::to_string(reference.height) + " px); choose a smaller --subset.");
  return options;
}

}  // namespace

Tracker::Tracker(const TrackOptions& options, ImageView reference, const Roi& roi)
    : impl_(std::make_unique<Impl>(checked(options, reference), reference, roi)) {}
Tracker::~Tracker() = default;
Tracker::Tracker(Tracker&&) noexcept = default;
Tracker& Tracker::operator=(Tracker&&) noexcept = default;

const Grid& Tracker::grid() const { return impl_->grid; }

Field Tracker::track(ImageView current, std::stop_token stop) {
  impl_->stop = std::move(stop);
  return impl_->track(current);
}

double Tracker::noise() const { return impl_->noise; }
const StageSeconds& Tracker::seconds() const { return impl_->seconds; }

std::vector<std::string> Tracker::kernels() const {
  std::vector<std::string> out(impl_->variants.begin(), impl_->variants.end());
  out.push_back(impl_->anchor->refiner.kernel());
  return out;
}

std::string Tracker::device() const { return impl_->correlator.device().backend; }

}  // namespace dic

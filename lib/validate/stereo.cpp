#include "validate/stereo.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <dic/field_schema.hpp>
#include <utility>

#include "validate/metrics.hpp"

namespace dic::validation {
namespace {

constexpr double kSteepest = 60;  // degrees; points seen more obliquely need not be found
constexpr double kGrossMm =
    0.1;  // an ok point off by more, and by more than kSigmas sigma, is wrong, or one without sigma
constexpr double kMicro = 1e6, kMicrometres = 1e3;

using Values = std::array<double, kStereoQuantities.size()>;

/// The truth at a node.
struct TrueNode {
  Values values;
  bool is_hidden = true;    ///< nothing can be measured there
  bool is_visible = false;  ///< surely seen by both cameras in both pairs
  double incidence = 90;    ///< the more oblique one, degrees
};

TrueNode true_node(const StereoScene& scene, double x, double y) {
  const StereoTruth truth = scene.truth(1, x, y);
  TrueNode node;
  std::ranges::copy(truth.position_mm, node.values.begin());
  std::ranges::copy(truth.displacement_mm, node.values.begin() + 3);
  node.values[6] = truth.exx, node.values[7] = truth.eyy, node.values[8] = truth.exy;
  node.is_hidden = truth.measurable == Measurable::no;
  node.is_visible = truth.measurable == Measurable::yes;
  if (!truth.views.empty()) {
    node.incidence = 0;
    for (const StereoTruth::View& view : truth.views)
      node.incidence = std::max(node.incidence, std::isnan(view.incidence_deg) ? 90 : view.incidence_deg);
  }
  return node;
}

double scale_of(std::size_t quantity) { return quantity < kStereoLengths ? kMicrometres : kMicro; }

/// Values of a quantity and its sigma at a node of the field.
std::array<double, 2> measured(const Field& field, std::size_t quantity, std::size_t k) {
  const FieldArray& array = *find_field_array(kStereoQuantities[quantity]);
  return {value_at(field, array, k), value_at(field, *sigma_of(array), k)};
}

/// Compares a field with the truth at its nodes.
class StereoJudge {
 public:
  StereoJudge(const Field& field, std::vector<TrueNode> truth, int subset)
      : field_(field), truth_(std::move(truth)), subset_(subset) {}

  StereoMetrics metrics() {
    for (std::size_t k = 0; k < truth_.size(); ++k)
      if (field_.grid().inside[k] != 0) add(k);
    for (std::size_t q = 0; q < kStereoQuantities.size(); ++q)
      metrics_.quantities[q] = {errors_[q].mean() * scale_of(q), errors_[q].sd() * scale_of(q),
                                ratios_[q].rms()};
    metrics_.trace_bias = trace_.mean() * kMicro;
    return metrics_;
  }

 private:
  void add(std::size_t k) {
    const TrueNode& truth = truth_[k];
    const bool is_ok = field_.status[k] == Status::ok;
    const bool is_expected = is_whole(k) && truth.incidence < kSteepest;
    ++metrics_.points;
    metrics_.expected += is_expected ? 1 : 0;
    metrics_.lost += is_expected && !is_ok ? 1 : 0;
    if (!is_ok) return;
    ++metrics_.ok;
    metrics_.hidden += truth.is_hidden ? 1 : 0;
    metrics_.wrong += truth.is_hidden || is_gross(k) ? 1 : 0;
    if (is_expected) add_errors(k);
  }

  void add_errors(std::size_t k) {
    double trace = 0;
    for (std::size_t q = 0; q < kStereoQuantities.size(); ++q) {
      const auto [value, sigma] = measured(field_, q, k);
      const double error = value - truth_[k].values[q];
      if (q == 6 || q == 7) trace += error;
      if (!std::isfinite(error) || !(sigma > 0)) continue;
      errors_[q].add(error);
      ratios_[q].add(error / sigma);
    }
    if (std::isfinite(trace)) trace_.add(trace);
  }

  bool is_gross(std::size_t k) const {
    for (std::size_t q = 0; q < kStereoLengths; ++q) {
      const auto [value, sigma] = measured(field_, q, k);
      const double error = std::abs(value - truth_[k].values[q]);
      if (!(sigma > 0) || (error > kGrossMm && error > kSigmas * sigma)) return true;
    }
    return false;
  }

  /// True if the whole subset is seen: all nodes up to the next one beyond its edge are.
  bool is_whole(std::size_t k) const {
    const Grid& grid = field_.grid();
    const int reach = (subset_ / 2 + grid.step - 1) / grid.step;
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    if (i < reach || j < reach || i + reach >= grid.nx || j + reach >= grid.ny) return false;
    for (int y = j - reach; y <= j + reach; ++y)
      for (int x = i - reach; x <= i + reach; ++x)
        if (!truth_[static_cast<std::size_t>(y) * grid.nx + x].is_visible) return false;
    return true;
  }

  const Field& field_;
  std::vector<TrueNode> truth_;
  int subset_;
  StereoMetrics metrics_;
  std::array<Moments, kStereoQuantities.size()> errors_, ratios_;
  Moments trace_;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

const StereoMetrics::Quantity& StereoMetrics::operator[](std::string_view name) const {
  return quantities.at(
      static_cast<std::size_t>(std::ranges::find(kStereoQuantities, name) - kStereoQuantities.begin()));
}

StereoJudgement measure_stereo(const StereoCase& one, const TrackOptions& options, core::ThreadPool& pool,
                               const std::stop_token& stop) {
  const StereoScene scene(one.synth);
  std::array<Image, 4> images;
  for (std::size_t k = 0; k < images.size(); ++k) images[k] = scene.frame(k % 2, static_cast<int>(k / 2));
  StereoOptions stereo;
  stereo.track = options;
  StereoJudgement judgement;
  const auto start = std::chrono::steady_clock::now();
  StereoTracker tracker(stereo, one.synth.rig, images[0], images[1], {}, stop);
  const Field field = tracker.track(images[2], images[3], stop).field;
  judgement.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  judgement.device = tracker.device();
  judgement.options = tracker.options();
  const Grid& grid = field.grid();
  std::vector<TrueNode> truth(static_cast<std::size_t>(grid.nodes()));
  core::for_each_index(pool, grid.nodes(), [&](std::int64_t k) {
    truth[static_cast<std::size_t>(k)] =
        true_node(scene, grid.x(static_cast<int>(k % grid.nx)), grid.y(static_cast<int>(k / grid.nx)));
  });
  judgement.metrics = StereoJudge(field, std::move(truth), judgement.options.refine.subset).metrics();
  return judgement;
}

std::vector<std::string> broken_bounds(const StereoBounds& bounds, const StereoMetrics& metrics) {
  std::vector<std::string> sentences;
  // An unknown value (NaN) breaks a bound: something must be measured.
  const auto check = [&](const std::string& what, double value, double least, double most) {
    if (!(value >= least && value <= most))
      sentences.push_back(what + ": " + number(value) + ", not between " + number(least) + " and " +
                          number(most));
  };
  check("bias of Z in um", metrics["Z"].bias, -bounds.z_bias, bounds.z_bias);
  check("sd of Z in um", metrics["Z"].sd, 0, bounds.z_sd);
  for (std::size_t k = 0; k < 3; ++k) {
    const StereoMetrics::Quantity& moved = metrics.quantities[3 + k];
    const std::string name(kStereoQuantities[3 + k]);
    check("bias of " + name + " in um", moved.bias, -bounds.motion_bias, bounds.motion_bias);
    check("sd of " + name + " in um", moved.sd, 0, bounds.motion_sd[k]);
  }
  for (std::size_t q = kStereoLengths; q < kStereoQuantities.size(); ++q) {
    const std::string name(kStereoQuantities[q]);
    check("bias of " + name + " in microstrain", metrics.quantities[q].bias, -bounds.strain_bias,
          bounds.strain_bias);
    check("sd of " + name + " in microstrain", metrics.quantities[q].sd, 0, bounds.strain_sd);
  }
  check("bias of exx + eyy in microstrain", metrics.trace_bias, -2 * bounds.strain_bias,
        2 * bounds.strain_bias);
  for (std::size_t q = 0; q < kStereoQuantities.size(); ++q)
    check("observed / predicted sigma of " + std::string(kStereoQuantities[q]), metrics.quantities[q].scatter,
          bounds.least_scatter, bounds.most_scatter);
  const double expected = std::max<double>(1, static_cast<double>(metrics.expected));
  check("share of lost points", metrics.expected > 0 ? static_cast<double>(metrics.lost) / expected : 1, 0,
        bounds.lost);
  check("number of wrong points", static_cast<double>(metrics.wrong), 0, 0);
  return sentences;
}

std::string StereoBounds::text() const {
  return "Z: bias <= " + number(z_bias) + ", sd <= " + number(z_sd) +
         " um, U, V, W: bias <= " + number(motion_bias) + ", sd <= " + number(motion_sd[0]) + ", " +
         number(motion_sd[1]) + ", " + number(motion_sd[2]) + " um, strain: bias <= " + number(strain_bias) +
         ", sd <= " + number(strain_sd) + " um/m, observed / predicted " + number(least_scatter) + ".." +
         number(most_scatter) + ", lost <= " + number(100 * lost) + " %, none wrong";
}

}  // namespace dic::validation

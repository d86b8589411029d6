#include "track/order_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/strain_sigma.hpp>
#include <dic/shared/subset_window.hpp>
#include <dic/shared/track_rules.hpp>
#include <set>
#include <utility>

#include "track/field_steps.hpp"

namespace dic::track {
namespace {

/// Order 2 is taken if the mean squared difference of both orders is this many times what noise alone causes.
/// The factor would be 2 where the error of order 1 equals the noise that order 2 adds; it is larger because
/// the mean itself is noisy.
constexpr double kThreshold = 2.8;
/// Above this many times the noise, the rest of the difference counts as an error of order 1 in its sigma.
constexpr double kSignificant = 1.5;
/// Smallest share of order 2's variance that the difference can have. It is 0.7 for white noise; less is
/// assumed because a misfit of order 1 makes its sigma too large.
constexpr double kLeastShare = 0.25;

/// Half the side of the square of nodes over which the difference is averaged: nine tenths of a subset, at
/// least two nodes. The noise of neighbours within a subset is nearly the same, so that a smaller square
/// would decide by chance.
int averaging_radius(int subset, int step) { return std::max(2, (9 * subset / 10 + step / 2) / step); }

/// Sums over squares of nodes.
class SquareSums {
 public:
  SquareSums(int nx, int ny) : nx_(nx), ny_(ny), sums_(static_cast<std::size_t>(nx + 1) * (ny + 1)) {}

  /// Sums value(node) over the nodes.
  template <typename Value>
  void fill(const Value& value) {
    for (int j = 0; j < ny_; ++j) {
      double row = 0;
      for (int i = 0; i < nx_; ++i) {
        row += value(std::int64_t{j} * nx_ + i);
        at(i + 1, j + 1) = at(i + 1, j) + row;
      }
    }
  }
  double around(int i, int j, int radius) const {
    const int left = std::max(i - radius, 0), right = std::min(i + radius + 1, nx_);
    const int top = std::max(j - radius, 0), bottom = std::min(j + radius + 1, ny_);
    return at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top);
  }

 private:
  double& at(int i, int j) { return sums_[static_cast<std::size_t>(j) * (nx_ + 1) + i]; }
  double at(int i, int j) const { return sums_[static_cast<std::size_t>(j) * (nx_ + 1) + i]; }

  int nx_, ny_;
  std::vector<double> sums_;
};

double squared(double value) { return value * value; }

/// Covariance of the displacements of both orders by noise alone, over the variance of order 1. It is 1 with
/// uniform weights: the estimate of order 1 is the best one there is while its model holds, so that what
/// order 2 adds to it is independent of it.
double shared_variance(int subset, SubsetWeights weights) {
  const strain::ErrorKernel kernel({subset, 2, weights});
  double plain = 0, curved = 0;
  for (int i = -kernel.radius; i <= kernel.radius; ++i) {
    plain += squared(kernel.weight(i));
    curved += squared(kernel.weight(i)) * kernel.square(i);
  }
  return 1 + 2 * kernel.curved / kernel.flat * curved / plain;
}

/// Variance of the difference of both orders by noise alone.
double variance_of_difference(double shared, float sigma_first, float sigma_second) {
  return std::max(squared(sigma_second) - (2 * shared - 1) * squared(sigma_first),
                  kLeastShare * squared(sigma_second));
}

/// Copies the values of order 2 at a node.
void take_values(Field& to, const Field& from, std::int64_t node) {
  to.order[node] = has_values(from.status[node]) ? 2 : 0;
  to.u[node] = from.u[node];
  to.v[node] = from.v[node];
  to.zncc[node] = from.zncc[node];
  to.sigma_u[node] = from.sigma_u[node];
  to.sigma_v[node] = from.sigma_v[node];
  to.status[node] = from.status[node];
  to.iterations[node] = from.iterations[node];
}

/// Adds to the sigma of nodes that took order 2 the displacement caused by the bending of the field, as
/// track::bend_at does, with the curvatures from the displacements half a subset apart.
void add_bends(Field& chosen, const Field& second, int subset, SubsetWeights weights) {
  const Grid& grid = chosen.grid();
  const int reach = bend_reach(subset, grid.step);
  const double apart = static_cast<double>(reach) * grid.step;
  const double factor = kBendOfCurvatures * mean_square_distance(weights, subset) / (2 * apart * apart);
  const auto bend = [&](const NodeValues<double>& value, std::int64_t node, std::int64_t towards) {
    const auto at = [&](int k) { return value[node + k * towards]; };
    return factor * (at(-2) - 4 * at(-1) + 6 * at(0) - 4 * at(1) + at(2));
  };
  const auto measured = [&](std::int64_t node, std::int64_t towards) {
    for (int k = -2; k <= 2; ++k)
      if (second.status[node + k * towards] != Status::ok) return false;
    return true;
  };
  const auto with_bends = [](float sigma, double squares) {
    return static_cast<float>(std::sqrt(squared(sigma) + bend_variance(squares, squared(sigma))));
  };
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::int64_t node = std::int64_t{j} * grid.nx + i;
      if (chosen.order[node] != 2) continue;
      double u = 0, v = 0;
      const auto add_axis = [&](int index, int count, std::int64_t towards) {
        if (index < 2 * reach || index + 2 * reach >= count || !measured(node, towards)) return;
        u += squared(bend(second.u, node, towards));
        v += squared(bend(second.v, node, towards));
      };
      add_axis(i, grid.nx, reach);
      add_axis(j, grid.ny, std::int64_t{reach} * grid.nx);
      chosen.sigma_u[node] = with_bends(chosen.sigma_u[node], u);
      chosen.sigma_v[node] = with_bends(chosen.sigma_v[node], v);
    }
}

template <typename Part>
using Both = std::array<std::unique_ptr<Part>, 2>;

struct FrameOfBoth final : Frame {
  std::array<std::shared_ptr<const Frame>, 2> frames;
};
const FrameOfBoth& both(const Frame& frame) { return static_cast<const FrameOfBoth&>(frame); }

struct PositionsOfBoth final : PointPositions {
  std::array<std::shared_ptr<const PointPositions>, 2> positions;
};

class MeasurementOfBoth final : public Measurement {
 public:
  MeasurementOfBoth(Both<Measurement> measured, const RefineOptions& options)
      : measured_(std::move(measured)), options_(options) {}

  std::shared_ptr<const PointPositions> positions() override {
    auto out = std::make_shared<PositionsOfBoth>();
    for (int k = 0; k < 2; ++k) out->positions[k] = measured_[k]->positions();
    return out;
  }
  PointCounts counts() override {
    const PointCounts first = measured_[0]->counts(), second = measured_[1]->counts();
    return {std::max(first.measured, second.measured), std::min(first.lost, second.lost)};
  }

 private:
  MeasuredFrame read() override {
    MeasuredFrame frame = measured_[0]->fetch();
    const FrameResult second = measured_[1]->fetch().result;
    frame.result.noise = second.noise;  // the noise of order 2 contains less misfit
    add_time_of(frame.result, second);
    change_displacements(frame, "refine", [&](Field& field) {
      choose_order(field, second.field, options_.subset, options_.weights);
    });
    return frame;
  }

  Both<Measurement> measured_;
  RefineOptions options_;
};

class ReferenceOfBoth final : public ActiveReference {
 public:
  ReferenceOfBoth(Both<ActiveReference> references, const TrackOptions& options)
      : references_(std::move(references)), options_(options) {}

  const ActiveReference* of(int k) const { return references_[k].get(); }
  bool surely_found() const override {
    return references_[0]->surely_found() && references_[1]->surely_found();
  }
  std::unique_ptr<Measurement> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                       const NextFrame&) override {
    Both<Measurement> measured;
    for (int k = 0; k < 2; ++k) measured[k] = references_[k]->measure(both(*current).frames[k], stop, {});
    return std::make_unique<MeasurementOfBoth>(std::move(measured), options_.refine);
  }
  bool start_from(const ActiveReference& other) override {
    const auto* of_both = dynamic_cast<const ReferenceOfBoth*>(&other);
    if (!of_both) return false;
    bool started = true;
    for (int k = 0; k < 2; ++k) started &= references_[k]->start_from(*of_both->references_[k]);
    return started;
  }
  void limit_effort(std::span<const Effort> efforts) override {
    for (const auto& reference : references_) reference->limit_effort(efforts);
  }
  void look_near(const PossiblePlaces& places) override {
    for (const auto& reference : references_) reference->look_near(places);
  }

 private:
  Both<ActiveReference> references_;
  const TrackOptions& options_;
};

class BackendOfBoth final : public TrackingBackend {
 public:
  BackendOfBoth(const BackendFactory& open, const TrackOptions& options, const ImageView& image,
                const ReferenceAnalysis& analysis)
      : options_(options) {
    for (int k = 0; k < 2; ++k) {
      TrackOptions one = options;
      one.refine.order = k + 1;
      backends_[k] = open(one, image, analysis);
    }
  }

  std::shared_ptr<const Frame> take(ImageView image) override {
    auto out = std::make_shared<FrameOfBoth>();
    for (int k = 0; k < 2; ++k) out->frames[k] = backends_[k]->take(image);
    return out;
  }
  std::shared_ptr<const PointPositions> place(const Points& points) override {
    auto out = std::make_shared<PositionsOfBoth>();
    for (int k = 0; k < 2; ++k) out->positions[k] = backends_[k]->place(points);
    return out;
  }
  std::unique_ptr<ActiveReference> make_reference(std::shared_ptr<const Frame> image,
                                                  const PointPositions& positions,
                                                  const ActiveReference* before) override {
    Both<ActiveReference> references;
    for (int k = 0; k < 2; ++k)
      references[k] = backends_[k]->make_reference(
          both(*image).frames[k], *static_cast<const PositionsOfBoth&>(positions).positions[k],
          before ? static_cast<const ReferenceOfBoth*>(before)->of(k) : nullptr);
    return std::make_unique<ReferenceOfBoth>(std::move(references), options_);
  }
  std::vector<std::string> kernels() const override {
    std::set<std::string> all;
    for (const auto& backend : backends_)
      for (const std::string& kernel : backend->kernels()) all.insert(kernel);
    return {all.begin(), all.end()};
  }
  std::string device() const override { return backends_[0]->device(); }
  std::string note() const override { return backends_[0]->note(); }

 private:
  TrackOptions options_;
  Both<TrackingBackend> backends_;
};

}  // namespace

void choose_order(Field& first, const Field& second, int subset, SubsetWeights weights) {
  const Grid& grid = first.grid();
  const auto comparable = [&](std::int64_t node) {
    return first.status[node] == Status::ok && second.status[node] == Status::ok;
  };
  // Squared differences of both orders in u and in v, and the variances of these by noise.
  std::array<SquareSums, 4> sums{SquareSums(grid.nx, grid.ny), SquareSums(grid.nx, grid.ny),
                                 SquareSums(grid.nx, grid.ny), SquareSums(grid.nx, grid.ny)};
  SquareSums counts(grid.nx, grid.ny);
  const auto fill = [&](SquareSums& to, const auto& value) {
    to.fill([&](std::int64_t node) { return comparable(node) ? value(node) : 0.0; });
  };
  first.order = NodeValues<std::uint8_t>(first.status.size());
  std::ranges::transform(first.status, first.order.begin(),
                         [](Status status) { return std::uint8_t{has_values(status)}; });
  const double shared = shared_variance(subset, weights);
  fill(sums[0], [&](auto node) { return squared(second.u[node] - first.u[node]); });
  fill(sums[1], [&](auto node) { return squared(second.v[node] - first.v[node]); });
  fill(sums[2],
       [&](auto node) { return variance_of_difference(shared, first.sigma_u[node], second.sigma_u[node]); });
  fill(sums[3],
       [&](auto node) { return variance_of_difference(shared, first.sigma_v[node], second.sigma_v[node]); });
  fill(counts, [](auto) { return 1.0; });
  const int radius = averaging_radius(subset, grid.step);
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::int64_t node = std::int64_t{j} * grid.nx + i;
      if (!comparable(node)) {
        if (second.status[node] == Status::ok) take_values(first, second, node);
        continue;
      }
      const double count = counts.around(i, j, radius);
      std::array<double, 4> mean;
      for (int k = 0; k < 4; ++k) mean[k] = sums[k].around(i, j, radius) / count;
      if (mean[0] + mean[1] > kThreshold * (mean[2] + mean[3])) {
        take_values(first, second, node);
        continue;
      }
      const auto with_error = [](float sigma, double difference, double noise) {
        const double error = difference > kSignificant * noise ? difference - noise : 0;
        return static_cast<float>(std::sqrt(squared(sigma) + error));
      };
      first.sigma_u[node] = with_error(first.sigma_u[node], mean[0], mean[2]);
      first.sigma_v[node] = with_error(first.sigma_v[node], mean[1], mean[3]);
    }
  add_bends(first, second, subset, weights);
}

std::unique_ptr<TrackingBackend> with_both_orders(const BackendFactory& open, const TrackOptions& options,
                                                  const ImageView& image, const ReferenceAnalysis& analysis) {
  return std::make_unique<BackendOfBoth>(open, options, image, analysis);
}

}  // namespace dic::track

#include "track/field_steps.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "camera/correct_field.hpp"
#include "fields/scatter.hpp"
#include "fields/strain.hpp"
#include "global/global_step.hpp"

namespace dic::track {
namespace {

/// Two measurements agree within this many standard deviations of their difference.
constexpr double kSigmas = 5;

bool agree(const Field& a, const Field& b, std::int64_t node) {
  const double spread_u = std::hypot(a.sigma_u[node], b.sigma_u[node]);
  const double spread_v = std::hypot(a.sigma_v[node], b.sigma_v[node]);
  return std::abs(a.u[node] - b.u[node]) <= kSigmas * spread_u &&
         std::abs(a.v[node] - b.v[node]) <= kSigmas * spread_v;
}

MeasuredSubsets subsets_of(const TrackOptions& options) {
  return {options.refine.subset, options.refine.order, options.refine.weights};
}

/// Adds the seconds since the stopwatch began to the strain.
void count_strain_time(FrameResult& result, const Stopwatch& watch) {
  result.seconds += {.strain = watch.seconds()};
  result.spans.push_back(watch.span("strain"));
}

/// Strain of the displacements as they are.
StrainField strain_of(const MeasuredFrame& frame, const TrackOptions& options, core::ThreadPool& pool) {
  const Field& field = frame.result.field;
  return frame.errors
             ? fields::compute_strain(field, options.strain, pool, *frame.errors, subsets_of(options))
             : track::strain_of(field, options, pool);
}

StrainField final_strain(const MeasuredFrame& frame, const TrackOptions& options, core::ThreadPool& pool) {
  const Field& field = frame.result.field;
  if (!frame.strain_sigmas) return strain_of(frame, options, pool);
  StrainField strain = fields::compute_strain(field, options.strain, pool);
  strain.sigma_exx = frame.strain_sigmas->sigma_exx;
  strain.sigma_eyy = frame.strain_sigmas->sigma_eyy;
  strain.sigma_exy = frame.strain_sigmas->sigma_exy;
  return strain;
}

/// Computes the strain of the displacements if it is missing, and counts the time.
void complete_strain(MeasuredFrame& frame, const TrackOptions& options, core::ThreadPool& pool) {
  if (frame.has_strain) return;
  const Stopwatch watch;
  frame.result.field.strain = final_strain(frame, options, pool);
  frame.has_strain = true;
  count_strain_time(frame.result, watch);
}

}  // namespace

FrameResult PendingFrame::fetch() {
  MeasuredFrame frame = measured_->fetch();
  for (const FieldStep& step : steps_) step(frame);
  complete_strain(frame, options_, pool_);
  return std::move(frame.result);
}

FieldStep prefer_direct(std::shared_ptr<Measurement> direct) {
  return [direct = std::move(direct)](MeasuredFrame& frame) {
    const FrameResult other = direct->fetch().result;
    add_time_of(frame.result, other);
    change_displacements(frame, "refine", [&](Field& field) { take_direct(field, other.field); });
  };
}

FieldStep give_up_nodes(std::span<const std::int64_t> nodes, Status reason) {
  return [nodes, reason](MeasuredFrame& frame) {
    change_displacements(frame, "refine", [&](Field& field) {
      for (const std::int64_t node : nodes)
        if (field.status[node] != Status::masked) clear_node(field, node, reason);
    });
  };
}

FieldStep restore_noise(double noise_gain) {
  return [noise_gain](MeasuredFrame& frame) { frame.result.noise /= noise_gain; };
}

FieldStep subtract_bias(std::shared_ptr<const analysis::InterpolationBias> bias, const TrackOptions& options,
                        core::ThreadPool& pool) {
  return [bias = std::move(bias), &options, &pool](MeasuredFrame& frame) {
    change_displacements(frame, "refine", [&](Field& field) {
      bias->subtract_from(field, options.refine.subset, options.refine.weights, pool);
    });
  };
}

FieldStep check_scatter(const TrackOptions& options) {
  return [&options](MeasuredFrame& frame) {
    const Stopwatch watch;
    const fields::ScatterRatios ratios = fields::excess_scatter(frame.result.field, subsets_of(options));
    frame.result.seconds += {.refine = watch.seconds()};
    if (ratios.u == 1 && ratios.v == 1) return;
    change_displacements(frame, "refine", [&](Field& field) {
      for (float& sigma : field.sigma_u) sigma *= static_cast<float>(ratios.u);
      for (float& sigma : field.sigma_v) sigma *= static_cast<float>(ratios.v);
    });
  };
}

FieldStep fit_globally(const TrackOptions& options, core::ThreadPool& pool) {
  return [&options, &pool](MeasuredFrame& frame) {
    change_displacements(frame, "global", [&](Field& field) {
      frame.errors = global::global_step(field, subsets_of(options), options.global, pool);
    });
  };
}

FieldStep correct_by_camera(std::shared_ptr<const NodePositions> nodes, const TrackOptions& options,
                            core::ThreadPool& pool) {
  return [nodes = std::move(nodes), &options, &pool](MeasuredFrame& frame) {
    const Stopwatch watch;
    Field& field = frame.result.field;
    frame.strain_sigmas = frame.has_strain ? std::move(field.strain) : strain_of(frame, options, pool);
    frame.errors.reset();  // the errors belong to displacements in the image
    frame.has_strain = false;
    camera::correct_field(field, *options.camera, nodes, pool);
    count_strain_time(frame.result, watch);
  };
}

StrainField strain_of(const Field& field, const TrackOptions& options, core::ThreadPool& pool) {
  return fields::compute_strain(field, options.strain, pool, subsets_of(options));
}

void take_direct(Field& followed, const Field& direct) {
  for (std::int64_t node = 0; node < followed.grid().nodes(); ++node) {
    if (direct.status[node] != Status::ok) continue;
    if (followed.status[node] == Status::ok && !agree(followed, direct, node)) continue;
    followed.u[node] = direct.u[node];
    followed.v[node] = direct.v[node];
    followed.zncc[node] = direct.zncc[node];
    followed.sigma_u[node] = direct.sigma_u[node];
    followed.sigma_v[node] = direct.sigma_v[node];
    followed.status[node] = Status::ok;
    followed.iterations[node] = direct.iterations[node];
    if (!followed.order.empty()) followed.order[node] = direct.order[node];
  }
}

void clear_node(Field& field, std::int64_t node, Status reason) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  field.u[node] = field.v[node] = std::numeric_limits<double>::quiet_NaN();
  field.zncc[node] = field.sigma_u[node] = field.sigma_v[node] = none;
  field.status[node] = reason;
}

void add_time_of(FrameResult& result, const FrameResult& other) {
  result.seconds += other.seconds;
  result.spans.insert(result.spans.end(), other.spans.begin(), other.spans.end());
}

}  // namespace dic::track

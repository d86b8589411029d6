#pragma once

#include <dic/track.hpp>
#include <limits>

#include "core/parallel.hpp"
#include "fields/strain.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {

/// A node without values, for this reason.
inline void clear_node(Field& field, std::int64_t node, Status reason) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  field.u[node] = field.v[node] = std::numeric_limits<double>::quiet_NaN();
  field.zncc[node] = field.sigma_u[node] = field.sigma_v[node] = none;
  field.status[node] = reason;
}

/// Calls change(field) on the field of a measured frame, computes its strain again, on the CPU, and counts
/// the time, under the name `stage`.
template <typename Change>
void change_field(FrameResult& result, const TrackOptions& options, ThreadPool& pool, const char* stage,
                  const Change& change) {
  Stopwatch watch;
  const auto begin = std::chrono::steady_clock::now();
  change(result.field);
  const double refine = watch.lap();
  const RefineOptions& measured = options.refine;
  result.field.strain = fields::compute_strain(
      result.field, options.strain, pool, MeasuredSubsets{measured.subset, measured.order, measured.weights});
  const double strain = watch.lap();
  result.seconds += {.refine = refine, .strain = strain};
  add_spans(result.spans, begin, {{stage, refine}, {"strain", strain}});
}

}  // namespace dic::track

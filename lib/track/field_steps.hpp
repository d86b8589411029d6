#pragma once

#include <chrono>
#include <dic/fields.hpp>
#include <dic/track.hpp>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "analysis/interpolation_bias.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/stopwatch.hpp"

/// The steps from a measured frame to its result. `Sequence` puts their list together; after all of them the
/// strain is computed once. They run on the CPU, in the thread that fetches the result.
namespace dic::track {

/// A step, which sets MeasuredFrame::has_strain to false if it changes displacements.
using FieldStep = std::function<void(MeasuredFrame&)>;

/// A measured frame, and the steps that are done when its result is fetched.
class PendingFrame {
 public:
  /// Options and pool must outlive this object.
  PendingFrame(std::unique_ptr<Measurement> measured, std::vector<FieldStep> steps,
               const TrackOptions& options, core::ThreadPool& pool)
      : measured_(std::move(measured)), steps_(std::move(steps)), options_(options), pool_(pool) {}

  /// Waits for the measurement, takes the steps, and computes the strain if it is missing. Call it once.
  FrameResult fetch();

 private:
  std::unique_ptr<Measurement> measured_;
  std::vector<FieldStep> steps_;
  const TrackOptions& options_;
  core::ThreadPool& pool_;
};

/// Takes values of a second measurement of the same frame, against the original reference, in which no errors
/// of intermediate references add up: at points where both measurements agree, and where only the second one
/// has a value.
FieldStep prefer_direct(std::shared_ptr<Measurement> direct);
/// Gives up nodes that cannot be measured, whatever was found there. nodes: must outlive the step.
FieldStep give_up_nodes(std::span<const std::int64_t> nodes, Status reason);
/// Converts the noise of filtered images to the noise before the filter. noise_gain: see Prefilter.
FieldStep restore_noise(double noise_gain);
/// Subtracts the bias of the interpolation. Options and pool must outlive the step.
FieldStep subtract_bias(std::shared_ptr<const analysis::InterpolationBias> bias, const TrackOptions& options,
                        core::ThreadPool& pool);
/// Makes all sigmas larger if displacements scatter more than they tell, for reasons that no rule for single
/// points sees. No status changes, so that devices agree. Options must outlive the step.
FieldStep check_scatter(const TrackOptions& options);
/// Fits one field to all subsets (dic/global.hpp). Options and pool must outlive the step.
FieldStep fit_globally(const TrackOptions& options, core::ThreadPool& pool);
/// Brings displacements into the coordinates of the options' camera. The sigmas of the strain are those in
/// the image, since the camera's derivative scales displacements and positions alike: the step computes them
/// alone. nodes: the grid in these coordinates. Options and pool must outlive the step.
FieldStep correct_by_camera(std::shared_ptr<const NodePositions> nodes, const TrackOptions& options,
                            core::ThreadPool& pool);

/// Computes the strain of displacements that were measured with these options.
StrainField strain_of(const Field& field, const TrackOptions& options, core::ThreadPool& pool);

/// Takes the values of `direct` as prefer_direct() does.
void take_direct(Field& followed, const Field& direct);

/// Removes the values of a node and sets its status.
void clear_node(Field& field, std::int64_t node, Status reason);

/// Adds the seconds and spans of another measurement of the same frame.
void add_time_of(FrameResult& result, const FrameResult& other);

/// Calls change(field) on displacements, which leaves no strain, and counts the time under the name `stage`.
template <typename Change>
void change_displacements(MeasuredFrame& frame, const char* stage, const Change& change) {
  const Stopwatch watch;
  const auto begin = std::chrono::steady_clock::now();
  change(frame.result.field);
  const double seconds = watch.seconds();
  frame.has_strain = false;
  frame.result.seconds += {.refine = seconds};
  add_spans(frame.result.spans, begin, {{stage, seconds}});
}

}  // namespace dic::track

#pragma once

#include <cstddef>
#include <dic/track.hpp>
#include <dic/track_stream.hpp>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "analysis/interpolation_bias.hpp"
#include "analysis/power_spectrum.hpp"
#include "analysis/prefilter.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/device_choice.hpp"
#include "track/field_steps.hpp"
#include "track/focus_match.hpp"

namespace dic::track {

/// One sequence of frames, and which image each of them is compared with (ReferenceStrategy).
class Sequence {
 public:
  /// Throws UsageError, DeviceError.
  Sequence(const TrackOptions& options, ImageView reference, const Roi& roi);

  const Grid& grid() const { return points_.grid(); }
  const TrackingBackend& backend() const { return *backend_; }
  /// With what was chosen from the reference.
  const TrackOptions& options() const { return options_; }
  /// Why the backend is this one: one sentence.
  const std::string& device_reason() const { return device_.reason; }
  /// Seconds that the reference took.
  double prepare_seconds() const { return prepare_seconds_; }

  /// Takes the pixels of a frame. May be called while another thread measures. Throws UsageError where size
  /// or type differ from the reference.
  std::shared_ptr<const Frame> take(ImageView current) const;
  /// Measures a frame. Frames are measured in their order. next: see ActiveReference::measure. Throws
  /// Cancelled.
  std::unique_ptr<PendingFrame> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                        const NextFrame& next = {});
  /// See TrackStream::restore.
  bool restore(std::span<const std::byte> state, const TrackStream::ReadFrame& read);

 private:
  /// The points in a frame, the first one being 0; -1 = in the reference.
  struct Located {
    std::int64_t frame = -1;
    std::shared_ptr<const PointPositions> positions;
  };

  std::vector<std::byte> state_after(Measurement& measured) const;
  bool restore_strategy(std::span<const std::byte> state, const TrackStream::ReadFrame& read);
  Sequence(const TrackOptions& options, ImageView reference, Image roi);
  /// all: the points of the whole grid.
  Sequence(const TrackOptions& options, ImageView reference, Image&& roi, const Points& all);
  ReferenceAnalysis analyse(Image roi, const Points& all);
  bool on_gpu() const { return device_.device != "cpu"; }
  std::shared_ptr<const Frame> take_checked(ImageView image) const;
  std::shared_ptr<const Frame> take_filtered(ImageView image, bool is_in_gpu) const;
  void watch_focus();
  std::unique_ptr<Measurement> measure_subsets(std::shared_ptr<const Frame> current,
                                               const std::stop_token& stop, const NextFrame& next,
                                               std::vector<FieldStep>& steps);
  std::unique_ptr<Measurement> measure_and_replace_reference(const std::shared_ptr<const Frame>& current,
                                                             const std::stop_token& stop);
  std::unique_ptr<Measurement> measure_or_replace_reference(const std::shared_ptr<const Frame>& current,
                                                            const std::stop_token& stop);
  std::unique_ptr<Measurement> measure_directly(const std::shared_ptr<const Frame>& current,
                                                const std::stop_token& stop);
  double found_share(const PointCounts& counts) const;

  ThreadPool pool_;      ///< for loops on the CPU, of all members
  ImageView reference_;  ///< its pixels belong to the caller, and are not used after construction
  DeviceChoice device_;
  std::optional<analysis::PowerSpectrum> spectrum_;  ///< of the reference; none of a small one
  analysis::Prefilter prefilter_;
  TrackOptions options_;                                     ///< every choice made
  std::shared_ptr<const analysis::InterpolationBias> bias_;  ///< null = not subtracted
  double prepare_seconds_ = 0;
  Points points_;  ///< in the reference
  ReferenceAnalysis analysis_;
  std::unique_ptr<TrackingBackend> backend_;
  std::unique_ptr<ActiveReference> active_reference_;
  /// The first one, when another has taken its place, as long as it is recognized (strategy automatic).
  std::unique_ptr<ActiveReference> original_reference_;
  bool is_original_replaced_ = false;
  std::unique_ptr<Measurement> direct_;  ///< by the original reference, of the frame in which it was replaced
  std::unique_ptr<FocusMatch> focus_;    ///< null where frames are measured from one to the next
  std::shared_ptr<const NodePositions> nodes_;  ///< in the camera's coordinates; null without one
  /// The frame before, for the strategies that may need it as the next reference.
  std::shared_ptr<const Frame> last_frame_;
  std::int64_t measured_ = 0;  ///< frames
  Located active_, last_;      ///< of active_reference_ and last_frame_
  std::int64_t last_lost_ = 0;
  std::int64_t lost_before_ = 0;  ///< points that were lost when the active reference took its place
};

}  // namespace dic::track

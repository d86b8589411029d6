#pragma once

#include <cstddef>
#include <dic/track.hpp>
#include <dic/track_stream.hpp>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "analysis/conditioning.hpp"
#include "analysis/interpolation_bias.hpp"
#include "analysis/power_spectrum.hpp"
#include "analysis/prefilter.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/device_choice.hpp"
#include "track/field_steps.hpp"
#include "track/focus_match.hpp"

namespace dic::track {

/// Measures a sequence of frames, and decides which image each of them is compared with (ReferenceStrategy).
class Sequence {
 public:
  /// Throws UsageError, DeviceError.
  Sequence(const TrackOptions& options, ImageView reference, const Roi& roi);

  const Grid& grid() const { return points_.grid(); }
  const TrackingBackend& backend() const { return *backend_; }
  /// The options, including those that were chosen from the reference.
  const TrackOptions& options() const { return options_; }
  /// Why this device measures, one sentence.
  const std::string& device_reason() const { return device_.reason; }
  /// Seconds that preparing the reference took.
  double prepare_seconds() const { return prepare_seconds_; }

  /// Takes the pixels of a frame. May be called while another thread measures. Throws UsageError if size or
  /// type differ from the reference.
  std::shared_ptr<const Frame> take(ImageView current) const;
  /// Measures a frame. Frames are measured in their order. next: see ActiveReference::measure. Throws
  /// Cancelled.
  std::unique_ptr<PendingFrame> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                        const NextFrame& next = {});
  /// Implements TrackStream::restore.
  bool restore(std::span<const std::byte> state, const TrackStream::ReadFrame& read);
  /// Starts the next frame from the last result of another sequence of the same points; if that is
  /// impossible, from a whole search.
  void start_from(const Sequence& other) { active_reference_->start_from(*other.active_reference_); }
  /// See ActiveReference::limit_effort. efforts: by node of the grid.
  void limit_effort(std::span<const Effort> efforts);
  /// Leaves sigmas as they are: without the check by scatter (docs/theory.md), for callers with another one.
  void leave_sigmas() { checks_scatter_ = false; }
  /// See ActiveReference::look_near.
  void look_near(const PossiblePlaces& places) { active_reference_->look_near(places); }

 private:
  /// Positions of the points in a frame. Frames are counted from 0; -1 is the reference.
  struct Located {
    std::int64_t frame = -1;
    std::shared_ptr<const PointPositions> positions;
  };

  std::vector<std::byte> state_after(Measurement& measured) const;
  bool restore_strategy(std::span<const std::byte> state, const TrackStream::ReadFrame& read);
  Sequence(const TrackOptions& options, ImageView reference, Image roi,
           const std::vector<Roi::Vertex>& points);
  /// all: the points of the whole grid, of which some rows may be measured.
  Sequence(const TrackOptions& options, ImageView reference, Image&& roi, const Points& all);
  ReferenceAnalysis analyse(Image roi, const Points& all);
  bool on_gpu() const { return device_.device != "cpu"; }
  std::shared_ptr<const Frame> take_checked(ImageView image) const;
  std::shared_ptr<const Frame> take_corrected(ImageView image, bool is_in_gpu) const;
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

  core::ThreadPool pool_;  ///< threads for loops on the CPU, used by all members
  DeviceChoice device_;
  analysis::Conditioning conditioning_;
  core::ObjectPool<Image>::Handle corrected_reference_;  ///< null if the conditioning changes nothing
  ImageView reference_;  ///< pixels of the caller or corrected ones, not used after construction
  std::optional<analysis::PowerSpectrum> spectrum_;  ///< spectrum of the reference; none if it is too small
  analysis::Prefilter prefilter_;
  TrackOptions options_;  ///< options with every choice made
  std::shared_ptr<const analysis::InterpolationBias>
      bias_;  ///< bias of the interpolation; null = not subtracted
  double prepare_seconds_ = 0;
  Points points_;  ///< points in the original reference
  ReferenceAnalysis analysis_;
  std::unique_ptr<TrackingBackend> backend_;
  std::unique_ptr<ActiveReference> active_reference_;
  /// The original reference after another image has replaced it, as long as it is recognized (strategy
  /// automatic).
  std::unique_ptr<ActiveReference> original_reference_;
  bool is_original_replaced_ = false;
  bool checks_scatter_ = true;
  std::unique_ptr<Measurement> direct_;  ///< measurement of the frame that led to the replacement of the
                                         ///< original reference, against that
  std::unique_ptr<FocusMatch> focus_;    ///< null if frames are measured from one to the next
  std::shared_ptr<const NodePositions> nodes_;  ///< nodes in the camera's coordinates; null without a camera
  /// The previous frame, for strategies that may make it the next reference.
  std::shared_ptr<const Frame> last_frame_;
  std::int64_t measured_ = 0;  ///< number of frames measured
  Located active_, last_;      ///< positions in active_reference_ and in last_frame_
  std::int64_t last_lost_ = 0;
  std::int64_t lost_before_ = 0;  ///< points that were lost before the active reference became one
};

}  // namespace dic::track

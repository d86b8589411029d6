#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "track/algorithm/point_refinement.hpp"
#include "track/backend.hpp"
#include "track/cuda/lookahead.hpp"
#include "track/cuda/tracker_context.hpp"

namespace dic::track::cuda {

/// An active reference on the GPUs: measures frames against it. The host queues work, and waits only for the
/// lengths of lists; from the pixels to the strain everything stays on the GPUs.
class CudaReference final : public ActiveReference {
 public:
  /// positions: of the points in this image, valid when the submitted fields are made; null if the points are
  /// their nodes. before: reference whose points continue their last motion; may be null.
  CudaReference(TrackerContext& context, const GroupFrame& image, const PositionsMemory* positions,
                const CudaReference* before);

  bool surely_found() const override { return surely_found_; }
  std::unique_ptr<Measurement> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                       const NextFrame& next) override;
  bool start_from(const ActiveReference& other) override;
  void limit_effort(std::span<const Effort> efforts) override;

 private:
  /// A frame whose work is being queued.
  struct QueuedFrame {
    std::vector<GpuFrame> frames;  ///< the frame on each GPU, by rank
    FrameWork begun;
    bool continues;  ///< the last frame was compared with this reference, or its points were taken over
    const std::stop_token& stop;
    const NextFrame& next;
  };

  QueuedFrame begin(const std::shared_ptr<const Frame>& current, const std::stop_token& stop,
                    const NextFrame& next);
  void measure_on(int rank, const QueuedFrame& queued_frame);
  void begin_search(StartSearch& search, GpuContext& gpu, DeviceField& field, std::int64_t number);
  void look_ahead(const GpuFrame& now, const QueuedFrame& queued_frame);
  std::vector<MeasuredPart> measured_parts() const;
  void balance_load();

  TrackerContext& context_;
  std::vector<std::shared_ptr<DeviceReference>> references_;  ///< the reference on each GPU, by rank
  Partition partition_;                                       ///< partition of the frame that was begun last
  Partition next_partition_;                                  ///< partition of the next frame
  const double reference_noise_;                              ///< noise of the reference, see image_noise
  bool surely_found_ = false;
  LostMemory lost_, next_lost_;  ///< memories after the last frame and after the one under way
  bool measured_before_;
  Lookahead lookahead_;
};

}  // namespace dic::track::cuda

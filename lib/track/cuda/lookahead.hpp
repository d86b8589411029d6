#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "track/cuda/memory/device_field.hpp"
#include "track/cuda/multi_gpu/gpu_group.hpp"
#include "track/cuda/start_search.hpp"

namespace dic::track::cuda {

/// Work on a frame that is queued before its measurement begins.
struct FrameWork {
  std::shared_ptr<DeviceField> field;                 ///< null if none was queued
  std::vector<std::optional<QueuedSearch>> searches;  ///< queued searches, by rank

  bool searched() const {
    return std::ranges::any_of(searches, [](const auto& search) { return search.has_value(); });
  }
  /// The queued search of a GPU that measures these points, or null.
  const QueuedSearch* search(int rank, const kernels::PointRange& own) const {
    const auto& queued = searches[rank];
    return queued && queued->own == own ? &*queued : nullptr;
  }
};

/// The search of the next frame, which is queued before that frame is requested, so that GPUs keep working
/// while the host waits for the end of the frame under way.
class Lookahead {
 public:
  explicit Lookahead(int gpus) : gpus_(gpus) { forget(); }

  /// Begins with a frame; null = no frame. Called by one rank, before the others look.
  void begin(std::shared_ptr<const Frame> frame, std::shared_ptr<DeviceField> field) {
    frame_ = std::move(frame);
    work_.field = std::move(field);
  }
  /// The frame that was begun; null if there is none.
  const GroupFrame* frame() const { return static_cast<const GroupFrame*>(frame_.get()); }
  DeviceField& field() const { return *work_.field; }
  void add(int rank, const QueuedSearch& search) { work_.searches[rank] = search; }
  /// Forgets everything, because the starts of the queued searches have changed.
  void forget() {
    frame_.reset();
    work_ = {nullptr, std::vector<std::optional<QueuedSearch>>(gpus_)};
  }
  /// Returns the work that was queued if it was for this frame, and forgets everything.
  FrameWork take(const std::shared_ptr<const Frame>& frame) {
    if (frame_ != frame) forget();
    FrameWork work = std::move(work_);
    forget();
    return work;
  }

 private:
  const int gpus_;
  std::shared_ptr<const Frame> frame_;
  FrameWork work_;
};

}  // namespace dic::track::cuda

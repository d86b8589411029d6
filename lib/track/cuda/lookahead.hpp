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

/// What is there of the measurement of a frame before it begins.
struct FrameWork {
  std::shared_ptr<DeviceField> field;                 ///< null: none
  std::vector<std::optional<QueuedSearch>> searches;  ///< by rank

  bool searched() const {
    return std::ranges::any_of(searches, [](const auto& search) { return search.has_value(); });
  }
  /// The search of a GPU that measures these points, if it is queued.
  const QueuedSearch* search(int rank, const kernels::PointRange& own) const {
    const auto& queued = searches[rank];
    return queued && queued->own == own ? &*queued : nullptr;
  }
};

/// Work on the next frame that is queued before it is asked for: its search, so that GPUs go on while the
/// host waits for the end of the frame under way.
class Lookahead {
 public:
  explicit Lookahead(int gpus) : gpus_(gpus) { forget(); }

  /// Begins with a frame; null: none. Called by one rank, before the others look.
  void begin(std::shared_ptr<const Frame> frame, std::shared_ptr<DeviceField> field) {
    frame_ = std::move(frame);
    work_.field = std::move(field);
  }
  /// Null: none.
  const GroupFrame* frame() const { return static_cast<const GroupFrame*>(frame_.get()); }
  DeviceField& field() const { return *work_.field; }
  void add(int rank, const QueuedSearch& search) { work_.searches[rank] = search; }
  /// Forgets all: the starts of the queued searches have changed since.
  void forget() {
    frame_.reset();
    work_ = {nullptr, std::vector<std::optional<QueuedSearch>>(gpus_)};
  }
  /// What was queued for this frame, if it is the one. Forgets all.
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

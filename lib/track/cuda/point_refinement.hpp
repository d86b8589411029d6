#pragma once

#include <functional>
#include <stop_token>

#include "track/algorithm/point_refinement.hpp"
#include "track/cuda/gpu_frame.hpp"
#include "track/cuda/multi_gpu/halo_exchange.hpp"
#include "track/cuda/tracker_context.hpp"

namespace dic::track::cuda {

/// The operations of the refinement (algorithm/point_refinement.hpp) on one GPU, for its own points of one
/// frame. All GPUs call the same functions; counts are sums over all GPUs. Writes the tracked points of the
/// reference.
class PointRefinement {
 public:
  static constexpr bool kSpeculative = true;

  /// starts: by point, in device memory. before_wait: called each time before the host waits for the GPU,
  /// when usually all work of the frame is queued.
  PointRefinement(TrackerContext& context, const GpuFrame& frame, HaloExchange& halo,
                  const kernels::PointStart* starts, std::function<void()> before_wait, std::stop_token stop);
  ~PointRefinement();
  PointRefinement(const PointRefinement&) = delete;
  PointRefinement& operator=(const PointRefinement&) = delete;

  void start_over();
  void refine_starts(int step);
  void begin_recovery();
  int recover(int most_waves);
  void count_remaining(int step);
  RemainingPoints remaining();
  void drop_islands();
  void restore_islands();
  std::int64_t lost();
  std::int64_t lost_in_view();
  bool refine_from_features(Stretch stretch);

 private:
  void select(const kernels::ScoreRange& scores, kernels::RefineTask* tasks, PointLists::Name count);
  void list_front(PointLists::Name count);
  kernels::RefineTasks listed(PointLists::Name count) const;
  void refine(PointLists::Name count, kernels::Event* most_done = nullptr);
  void accept(PointLists::Name count);
  void give_up_noise();
  void refine_early();
  void note_first_waves(const RemainingPoints& left);

  TrackerContext& context_;
  const RefineOptions& options_;
  const GpuFrame& frame_;
  HaloExchange& halo_;
  const kernels::PointStart* starts_;
  const std::function<void()> before_wait_;
  const std::stop_token stop_;
  PointLists& lists_;
  RefinementWorkspace& workspace_;
  const kernels::GridPoints& points_;
  const kernels::Stream& stream_;
  PointLists::Name front_ = PointLists::first_front;
  int next_waves_ = 0;  ///< number of waves that are queued before the host waits again
  int readback_ = 0;    ///< number of the readback of the remaining points
  int waits_ = 0;       ///< number of waits of the host for this frame
  int recoveries_ = 0;  ///< number of recoveries of this frame that have begun
  bool early_ = false;  ///< starts of this frame are refined early
};

}  // namespace dic::track::cuda

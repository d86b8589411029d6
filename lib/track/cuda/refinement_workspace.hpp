#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>

namespace dic::track::cuda {

/// Memory and state that the refinement keeps from frame to frame on one GPU.
class RefinementWorkspace {
 public:
  explicit RefinementWorkspace(std::int64_t points)
      : tasks_(points), results_(points), fresh_(points), supports_(points), early_of_point_(points) {}

  kernels::RefineTask* tasks() { return tasks_.get(); }
  kernels::RefineResult* results() { return results_.get(); }
  /// Flags by point: 1 if the last refinement measured it.
  std::uint8_t* fresh() { return fresh_.get(); }
  NeighbourSupport* supports() { return supports_.get(); }
  kernels::EarlyTasks early() {
    return {early_tasks_.get(), early_results_.get(), early_count_.get(), early_of_point_.get(), kMostEarly};
  }
  /// Memory for the counts of this GPU, of several GPUs, and for their sums.
  std::int32_t* noise_counts() { return noise_counts_.reserve<std::int32_t>(kernels::NoiseCounts::kCount); }
  std::int32_t* gathered_counts(int gpus) {
    return gathered_counts_.reserve<std::int32_t>((gpus + 1) * std::int64_t{kernels::NoiseCounts::kCount});
  }

  kernels::Event most_refined;   ///< most points of a frame are refined; the GPU is partly free from then on
  kernels::Event finished;       ///< all points of a frame are refined
  kernels::Stream early_stream;  ///< refines early tasks
  kernels::Event early_listed, early_refined;
  /// Number of waves that are queued before the host waits for the first time: 0 if the last frame needed
  /// none.
  int first_waves = 1;
  /// True if starts of low scores are refined during the first waves: the last frame needed some of them.
  bool refines_early = false;
  /// True if these were enough for the last frame.
  bool first_waves_sufficed = false;

 private:
  static constexpr std::int32_t kMostEarly = 2048;  ///< more would delay the waves

  /// Memory for all points, allocated when it is first needed.
  template <typename T>
  class Array {
   public:
    explicit Array(std::int64_t count) : count_(count) {}
    T* get() { return memory_.reserve<T>(count_); }

   private:
    std::int64_t count_;
    kernels::DeviceBuffer memory_;
  };

  Array<kernels::RefineTask> tasks_;
  Array<kernels::RefineResult> results_;
  Array<std::uint8_t> fresh_;
  Array<NeighbourSupport> supports_;
  Array<kernels::RefineTask> early_tasks_{kMostEarly};
  Array<kernels::RefineResult> early_results_{kMostEarly};
  Array<std::int32_t> early_count_{1}, early_of_point_;
  kernels::DeviceBuffer noise_counts_, gathered_counts_;
};

}  // namespace dic::track::cuda

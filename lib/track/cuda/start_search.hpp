#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "track/algorithm/start_search.hpp"
#include "track/cuda/gpu_frame.hpp"
#include "track/cuda/multi_gpu/halo_exchange.hpp"
#include "track/cuda/tracker_context.hpp"
#include "track/stop.hpp"

namespace dic::track::cuda {

/// A first search that is queued to its end.
struct QueuedSearch {
  kernels::PointRange own;      ///< points that are searched
  std::int64_t trackable = 0;   ///< number of them that can be looked for
  std::optional<int> readback;  ///< number of the readback of the lists' lengths; only in automatic range
};

/// The operations of the search for starts (algorithm/start_search.hpp) on one GPU, for its own points of one
/// frame. All GPUs call the same functions; counts are sums over all GPUs.
class StartSearch {
 public:
  static constexpr bool kSpeculative = true;

  /// number: of the frame. last: the points of the previous frame if it was compared with the same reference,
  /// else null.
  StartSearch(TrackerContext& context, const GpuFrame& frame, std::int64_t number,
              const kernels::TrackedPoint* last, std::stop_token stop);

  /// True if the first search can be queued without waiting for the lengths of lists.
  bool waits_for_nothing() const;
  /// The first search after it was queued. resume() continues it in another object.
  QueuedSearch queued() const { return {points_.own, *own_trackable_, readback_}; }
  void resume(const QueuedSearch& search);
  /// Starts by point, in device memory.
  const kernels::PointStart* starts() const { return starts_; }

  bool automatic() const { return !range_; }
  bool has_last() const { return last_ != nullptr; }
  void predict_from_last();
  void follow_common_motion();
  void predict_from_pyramid() { predict_from_pyramid(PointLists::unpredicted, starts_); }
  void search_all();
  void search_again(bool all);
  void leave_out_measured();
  std::int64_t trackable();
  std::int64_t unpredicted();
  std::int64_t lost();

 private:
  /// The points that are searched, and which of them must be searched again.
  struct Step {
    PointLists::Name from, again, spare;
    bool clipped;

    void advance() {
      from = again;
      std::swap(again, spare);
    }
  };

  void fetch_counts();
  /// Length of a list summed over all GPUs, by the readback that was waited for last.
  std::int64_t total(PointLists::Name list) { return context_.gpus().team().sum(lists_.size(list)); }
  std::int64_t missed(PointLists::Name missing, PointLists::Name excused);
  void list_own_points();
  void split(const std::int32_t* list, std::int64_t n);
  void search(kernels::PointStart* starts);
  void search_asked(const kernels::AskedPoints& asked);
  void search_steps(Step whole, Step clipped, kernels::PointStart* starts);
  void let_side_stream_follow();
  void follow(const std::int32_t* list, std::int64_t count, kernels::PointStart* starts);
  const MotionSample* samples_of_all(const kernels::AskedPoints& asked);
  void search_list(const Step& step, kernels::PointStart* starts);
  bool on_side_stream(bool clipped) const { return clipped && frame_.gpu.images().parallel_streams(); }
  const kernels::Stream& stream_of(bool clipped) const {
    return on_side_stream(clipped) ? workspace_.side_stream : stream_;
  }
  void predict_from_pyramid(PointLists::Name which, kernels::PointStart* starts);
  void fetch_coarse_field();
  void run_coarse_search();
  /// Lists the points that were not found, and starts reading the lengths of all lists.
  void list_lost(const kernels::PointStart* starts);

  TrackerContext& context_;
  const GpuFrame& frame_;
  PointLists& lists_;
  SearchWorkspace& workspace_;
  const kernels::GridPoints& points_;
  const kernels::Stream& stream_;
  const std::int64_t number_;
  const kernels::TrackedPoint* const last_;
  const std::stop_token stop_;
  const std::optional<int> range_;
  const int subset_, radius_;
  const bool follows_;  ///< the list `whole` is searched in one launch, and has clipped rectangles too
  kernels::PointStart* const starts_;
  /// The points of this frame, of which the measured ones do not count as lost; null: all count.
  const kernels::TrackedPoint* measured_ = nullptr;
  std::optional<int> readback_;  ///< number of the readback of the lists' lengths after the last search
  std::optional<std::int64_t> own_trackable_;  ///< count on this GPU; known when its points are listed
  std::optional<std::int64_t> trackable_, unpredicted_, excused_;
  bool has_coarse_field_ = false;
};

}  // namespace dic::track::cuda

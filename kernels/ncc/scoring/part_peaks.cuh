#pragma once

#include "ncc/scoring/scoring.cuh"
#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/tensor_tasks.cuh"

/// Peaks of pairs whose shifts are divided into parts, without surfaces in memory. A block stores only the
/// best score of its part. The best of these is the peak; the best of the parts that are not near it is a
/// candidate for the second peak. The scores around the peak and the other candidates lie in the one to four
/// parts within 2 px of the peak, which are computed a second time.
namespace dic::kernels {

/// Parts of pairs in device memory, each as pair * (parts of a pair) + part, in any order.
struct PartList {
  int* count = nullptr;
  std::int64_t* parts = nullptr;
};

/// Largest number of parts of a pair near its peak: all parts except the last ones are wider than 2 px.
constexpr int most_near_parts = 4;

/// The tasks of a job, or of a list of parts.
struct PartTasks : Tasks {
  PartList list;

  explicit PartTasks(const Tasks& all, const PartList& listed = {}) : Tasks(all), list(listed) {
    if (!listed.parts) return;
    windows *= references;
    references = 1;
  }
  std::int64_t distribute(std::int64_t resident, int tasks_per_block) {
    if (!list.parts) return Tasks::distribute(resident, tasks_per_block);
    next_task = static_cast<int>(std::min(most_near_parts * windows, resident));
    return next_task;
  }
  __device__ int count_for_block() const {
    if (!list.parts) return Tasks::count_for_block();
    return static_cast<int>((*list.count - blockIdx.x + next_task - 1) / next_task);
  }
  __device__ Place place(std::int64_t task) const {
    if (!list.parts) return Place(*this, task);
    const std::int64_t listed = list.parts[task];
    Place place;
    place.window = listed / parts();
    const auto part = static_cast<int>(listed - place.window * parts());
    place.part_y = part / parts_x, place.part_x = part - place.part_y * parts_x;
    return place;
  }
};

constexpr int neighbours = 9;

/// Intermediate results for a pair's peak.
struct PairPeak {
  Best best;     ///< best shift; not yet scaled, like the bests of the parts
  float beyond;  ///< best score of the parts that are not near; not yet scaled
  int second;    ///< second peak so far, as an order_preserving() integer
  float around[neighbours];
};

/// Device memory: the best of every part of every pair, intermediate results for every pair, and the parts
/// that are near a peak.
struct PartPeaks {
  Best* bests = nullptr;
  PairPeak* pairs = nullptr;
  PartList near = {};

  static Scratch scratch(int parts) {
    return {sizeof(std::int64_t),
            sizeof(Best) * parts + sizeof(PairPeak) + sizeof(std::int64_t) * most_near_parts};
  }
  PartPeaks() = default;
  PartPeaks(std::byte* memory, const Tasks& tasks, std::int64_t pairs_of_job)
      : near{reinterpret_cast<int*>(memory), reinterpret_cast<std::int64_t*>(memory) + 1} {
    bests = reinterpret_cast<Best*>(near.parts + most_near_parts * pairs_of_job);
    pairs = reinterpret_cast<PairPeak*>(bests + tasks.parts() * pairs_of_job);
  }
};

/// Queues merging the bests of all parts, each of up to columns x rows shifts, into `peaks.pairs`, and
/// listing the parts that are near a peak.
void launch_merged_parts(const NccJob& job, const Tasks& tasks, int columns, int rows, const PartPeaks& peaks,
                         StreamHandle stream);
/// Queues the peaks, after the parts near them have been computed again.
void launch_part_peaks(const NccJob& job, Criterion criterion, const PartPeaks& peaks, Peak* out,
                       StreamHandle stream);

}  // namespace dic::kernels

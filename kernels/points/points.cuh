#pragma once

#include <dic/kernels/points.hpp>
#include <dic/shared/departure_rules.hpp>
#include <dic/shared/trust_rules.hpp>

#include "common/launch.cuh"

/// Points as the rules of tracking see them, and lists, for all kernels of this folder.
namespace dic::kernels {

constexpr int point_threads = 256;  ///< a thread per point

/// The points of a frame, for the rules of <dic/shared/track_rules.hpp>.
struct FramePoints {
  using Index = std::int32_t;
  GridPoints grid;
  const TrackedPoint* tracked = nullptr;

  DIC_HOST_DEVICE Status status(Index i) const { return tracked[i].result.status; }
  DIC_HOST_DEVICE float zncc(Index i) const { return tracked[i].result.zncc; }
  DIC_HOST_DEVICE ShapeParameters shape(Index i) const {
    return joined(tracked[i].u, tracked[i].v, tracked[i].result.shape);
  }
  DIC_HOST_DEVICE const RefineResult& refined(Index i) const { return tracked[i].result; }
  DIC_HOST_DEVICE float residual(Index i) const { return tracked[i].result.residual_sd; }
  DIC_HOST_DEVICE float own_sigma(Index i) const {
    const RefineResult& result = tracked[i].result;
    return track::own_sigma(result.residual_sd, result.unit_sigma_u, result.unit_sigma_v);
  }
  DIC_HOST_DEVICE bool trackable(Index i) const { return grid.subsets[i].status == Status::ok; }
  /// True if the loss of a point is a reason to search the whole image.
  DIC_HOST_DEVICE bool is_missed(Index i) const {
    return !grid.efforts || grid.efforts[i] == track::Effort::search;
  }
  /// True if parts of the subset are worth measuring.
  DIC_HOST_DEVICE bool has_parts(Index i) const {
    return !grid.efforts || grid.efforts[i] >= track::Effort::neighbours;
  }
  DIC_HOST_DEVICE int x(Index i) const { return grid.x[i]; }
  DIC_HOST_DEVICE int y(Index i) const { return grid.y[i]; }
  DIC_HOST_DEVICE Size image() const { return grid.image; }
  DIC_HOST_DEVICE track::SubsetBox box(Index i) const {
    const PreparedSubset& s = grid.subsets[i];
    return {s.x + s.left, s.x + s.right, s.y + s.top, s.y + s.bottom};
  }
  DIC_HOST_DEVICE Index measured_towards(Index i, track::Direction towards) const {
    return track::trusted_towards(grid.nx, grid.ny, grid.point_at, grid.node_of[i], towards,
                                  track::kDepartureReach,
                                  [this](Index n) { return status(n) == Status::ok; });
  }
  template <typename Visit>
  DIC_HOST_DEVICE void for_each_neighbour(Index i, Visit&& visit) const {
    track::for_each_neighbour(grid.nx, grid.ny, grid.point_at, grid.node_of[i], visit);
  }
};

/// Calls body(k) for those of `n` points or list entries that this thread processes.
template <typename Body>
__device__ void for_each_point(std::int64_t n, Body&& body) {
  for_each_task(n, point_threads, threadIdx.x,
                [&](std::int64_t task) { body(static_cast<std::int32_t>(task)); });
}

template <typename Body>
__device__ void for_each_point(const PointRange& range, Body&& body) {
  for_each_point(range.count(), [&](std::int32_t k) { body(static_cast<std::int32_t>(range.first + k)); });
}

/// Calls body(k, whether k exists) by whole warps, for collective operations.
template <typename Body>
__device__ void for_each_warp_of_points(const PointRange& range, Body&& body) {
  const std::int64_t lanes = (range.count() + warp_size - 1) / warp_size * warp_size;
  for_each_point(PointRange{range.first, range.first + lanes},
                 [&](std::int32_t i) { body(i, i < range.last); });
}

/// Adds 1 to a count and returns the value before. The lanes of a warp that call it together use one atomic,
/// and get consecutive numbers.
__device__ inline std::int32_t count_up(std::int32_t* count) {
  const unsigned lanes = __activemask(), before = (1u << threadIdx.x % warp_size) - 1;
  const int leader = __ffs(static_cast<int>(lanes)) - 1;
  std::int32_t first = 0;
  if ((lanes & before) == 0) first = atomicAdd(count, __popc(lanes));
  return __shfl_sync(lanes, first, leader) + __popc(lanes & before);
}

__device__ inline void append(const PointList& list, std::int32_t point) {
  list.points[count_up(list.count)] = point;
}

/// Copies array[place] to shared memory, valid until the next call, for every lane whose place is not -1;
/// places must be consecutive from lane to lane. The warp reads word by word: if each lane read its own
/// element, every load would touch one memory sector per lane. All lanes of the warp must call it.
template <typename T>
__device__ const T& load_together(const T* array, std::int32_t place) {
  constexpr int words = sizeof(T) / sizeof(unsigned);
  static_assert(words % 2 == 1 && words * sizeof(unsigned) == sizeof(T),
                "an even number would cause bank conflicts");
  __shared__ unsigned values[point_threads * words];
  const unsigned loading = __ballot_sync(all_lanes, place >= 0);
  const int lane = threadIdx.x % warp_size, first = threadIdx.x - lane;
  const int least = __shfl_sync(all_lanes, place, __ffs(static_cast<int>(loading)) - 1);
  const auto* source = reinterpret_cast<const unsigned*>(array + max(least, 0));
  __syncwarp();
  for (int k = lane; k < __popc(loading) * words; k += warp_size) values[first * words + k] = source[k];
  __syncwarp();
  const int own = first + __popc(loading & ((1u << lane) - 1));
  return reinterpret_cast<const T*>(values)[own];
}

/// Writes array[place] = value for every lane whose place is not -1. The warp writes word by word: if each
/// lane wrote its own element, every store would touch one memory sector per lane. All lanes of the warp must
/// call it.
template <typename T>
__device__ void store_together(T* array, std::int32_t place, const T& value) {
  constexpr int words = sizeof(T) / sizeof(unsigned);
  static_assert(words % 2 == 1 && words * sizeof(unsigned) == sizeof(T),
                "an even number would cause bank conflicts");
  __shared__ unsigned values[point_threads * words];
  __shared__ std::int32_t places[point_threads];
  const unsigned storing = __ballot_sync(all_lanes, place >= 0);
  const int lane = threadIdx.x % warp_size, first = threadIdx.x - lane;
  if (place >= 0) {
    const int own = first + __popc(storing & ((1u << lane) - 1));
    places[own] = place;
    memcpy(values + own * words, &value, sizeof(T));
  }
  __syncwarp();
  for (int k = lane; k < __popc(storing) * words; k += warp_size) {
    const int element = k / words;
    auto* target = reinterpret_cast<unsigned*>(array + places[first + element]);
    target[k - element * words] = values[first * words + k];
  }
  __syncwarp();
}

inline void clear(std::int32_t* count, StreamHandle stream) { fill(count, 0, sizeof(*count), stream); }

inline std::string describe_points(const char* what, std::int64_t n) {
  return std::string(what) + " (" + std::to_string(n) + " points)";
}

}  // namespace dic::kernels

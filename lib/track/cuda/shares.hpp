#pragma once

#include <cstdint>
#include <dic/kernels/peer.hpp>
#include <span>

#include "track/cuda/share_begin.hpp"
#include "track/cuda/workbench.hpp"

namespace dic::track::cuda {

/// What a GPU knows of a measurement.
struct Side {
  Station& station;
  ReferenceSide& reference;
  const DeviceFrame& current;
};

/// Entries of a list.
struct Share {
  std::int64_t first, count;
  bool lead;  ///< the first GPU's own: nothing needs to be copied
};

/// What a GPU needs for its share of an array on the first GPU.
template <typename T>
const T* brought(const Side& side, kernels::DeviceBuffer& memory, const T* array, const Share& share) {
  if (share.lead) return array + share.first;
  T* here = memory.reserve<T>(share.count);
  kernels::copy_between(here, array + share.first, share.count * sizeof(T), side.station.stream.handle());
  return here;
}

/// Where a GPU writes its share of an array on the first GPU, until it is handed back.
template <typename T>
T* place_for(kernels::DeviceBuffer& memory, T* array, const Share& share) {
  return share.lead ? array + share.first : memory.reserve<T>(share.count);
}
template <typename T>
void hand_back(const Side& side, const T* here, T* array, const Share& share) {
  if (!share.lead)
    kernels::copy_between(array + share.first, here, share.count * sizeof(T), side.station.stream.handle());
}

/// Queues work(side, share) for every GPU's share of n entries. What is queued on the first GPU's stream
/// before is there for all of them; what is queued afterwards finds all shares finished.
template <typename Work>
void share_out(std::span<const Side> sides, std::int64_t n, const Work& work) {
  constexpr std::int64_t worth_sharing = 1 << 14;
  const int ranks = n < worth_sharing ? 1 : static_cast<int>(sides.size());
  Station& lead = sides.front().station;
  if (ranks > 1) lead.finished.record(lead.stream);
  for (int rank = ranks - 1; rank >= 0; --rank) {  // the others first: copies take time
    const Side& side = sides[rank];
    const kernels::DeviceScope scope(side.station.device.index);
    const std::int64_t begin = share_begin(n, rank, ranks), end = share_begin(n, rank + 1, ranks);
    if (rank > 0) lead.finished.hold(side.station.stream);
    work(side, Share{begin, end - begin, rank == 0});
    if (rank > 0) side.station.finished.record(side.station.stream);
  }
  for (int rank = 1; rank < ranks; ++rank) sides[rank].station.finished.hold(lead.stream);
}

}  // namespace dic::track::cuda

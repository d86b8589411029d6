#include "track/cuda/workbench.hpp"

#include <dic/error.hpp>
#include <dic/kernels/peer.hpp>

#include "track/cuda/shares.hpp"

namespace dic::track::cuda {
namespace {

std::vector<std::unique_ptr<Station>> open_stations(const TrackOptions& options, const Points& points,
                                                    const std::vector<kernels::Device>& devices) {
  const int ranks = ranks_for(points.size(), static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<Station>> stations;
  for (int rank = 0; rank < ranks; ++rank) {
    const int index = devices[rank].index;
    const kernels::DeviceScope scope(index);
    for (int other = 0; other < ranks; ++other)
      if (devices[other].index != index) kernels::allow_peer_access(devices[other].index);
    stations.push_back(std::make_unique<Station>(rank, options, points, devices[rank]));
  }
  return stations;
}

}  // namespace

Station::Station(int number, const TrackOptions& options, const Points& on_host, const kernels::Device& d)
    : rank(number),
      device(d),
      upload(d.index, options.refine.interpolation),
      points(on_host, stream),
      search(d) {
  lists.reserve(on_host.size(), stream);
}

Workbench::Workbench(const TrackOptions& o, const Points& p, const std::vector<kernels::Device>& devices)
    : options(o),
      points(p),
      stations(open_stations(o, p, devices)),
      crew(static_cast<int>(stations.size())),
      shares(equal_shares(p.size(), static_cast<int>(stations.size()))),
      coarse(lead().search) {}

Workbench::~Workbench() = default;

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
}

}  // namespace dic::track::cuda

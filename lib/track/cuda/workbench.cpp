#include "track/cuda/workbench.hpp"

#include <dic/error.hpp>
#include <dic/kernels/peer.hpp>

namespace dic::track::cuda {
namespace {

std::vector<std::unique_ptr<Station>> open_stations(const TrackOptions& options, const Points& points,
                                                    const std::vector<kernels::Device>& devices) {
  std::vector<std::unique_ptr<Station>> stations;
  for (const kernels::Device& device : devices) {
    const kernels::DeviceScope scope(device.index);
    stations.push_back(std::make_unique<Station>(options, points, device));
    for (const kernels::Device& other : devices)
      if (other.index != device.index) kernels::allow_peer_access(other.index);
  }
  return stations;
}

}  // namespace

Workbench::Workbench(const TrackOptions& o, const Points& points, const std::vector<kernels::Device>& devices)
    : options(o), stations(open_stations(o, points, devices)), coarse(lead().search) {
  const kernels::DeviceScope scope(lead().device.index);
  lists.reserve(points.size(), lead().stream);
}

Workbench::~Workbench() = default;

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
}

}  // namespace dic::track::cuda

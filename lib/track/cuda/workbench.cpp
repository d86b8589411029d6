#include "track/cuda/workbench.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/kernels/peer.hpp>
#include <limits>
#include <string>

#include "track/cuda/shares.hpp"

namespace dic::track::cuda {
namespace {

/// Kernels count the pixels of a plane with 31 bits.
const ImageView& checked(const ImageView& image) {
  if (kernels::PlaneLayout(image.width, image.height).elements() > std::numeric_limits<int>::max())
    throw DeviceError("Images of " + std::to_string(image.width) + "x" + std::to_string(image.height) +
                      " px are too large for a GPU, which takes 2^31 px; use --device cpu.");
  return image;
}

/// Of the GPU that has least.
std::size_t free_memory(const std::vector<kernels::Device>& devices) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const kernels::Device& device : devices) {
    const kernels::DeviceScope scope(device.index);
    least = std::min(least, kernels::free_memory());
  }
  return least;
}

/// Can each of the first `ranks` GPUs read the memory of the others, from now on?
bool connect(const std::vector<kernels::Device>& devices, int ranks) {
  bool readable = true;
  for (int rank = 0; rank < ranks; ++rank) {
    const kernels::DeviceScope scope(devices[rank].index);
    for (int other = 0; other < ranks; ++other)
      if (devices[other].index != devices[rank].index)
        readable &= kernels::allow_peer_access(devices[other].index);
  }
  return readable;
}

std::vector<std::unique_ptr<Station>> open_stations(const TrackOptions& options, const ImageMemory& images,
                                                    const Points& points,
                                                    const std::vector<kernels::Device>& devices) {
  const int ranks = ranks_for(points.size(), static_cast<int>(devices.size()));
  const bool readable = connect(devices, ranks);
  std::vector<std::unique_ptr<Station>> stations;
  for (int rank = 0; rank < ranks; ++rank) {
    const kernels::DeviceScope scope(devices[rank].index);
    stations.push_back(std::make_unique<Station>(rank, options, images, points, devices[rank], readable));
  }
  return stations;
}

}  // namespace

Station::Station(int number, const TrackOptions& options, const ImageMemory& images, const Points& on_host,
                 const kernels::Device& d, bool readable)
    : rank(number),
      device(d),
      reads_others(readable),
      beside(kernels::Priority::high),
      upload(d.index, options.refine.interpolation, images.rows > 0, refined),
      points(on_host, stream),
      search(d),
      search_of_cut(d) {
  if (images.rows > 0) bands.emplace(options, images.rows);
  lists.reserve(on_host.size(), stream);
}

Workbench::Workbench(const TrackOptions& o, const ImageView& image, const Points& p,
                     const std::vector<kernels::Device>& devices)
    : options(o),
      images(o, checked(image), p.size(), free_memory(devices)),
      points(p),
      stations(open_stations(o, images, p, devices)),
      team(static_cast<int>(stations.size())),
      shares(first_shares(p.size(), static_cast<int>(stations.size()))),
      coarse(lead().search) {}

Workbench::~Workbench() = default;

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
}

}  // namespace dic::track::cuda

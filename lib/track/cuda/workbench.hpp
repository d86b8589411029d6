#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "track/cuda/coarse.hpp"
#include "track/cuda/device_field.hpp"
#include "track/cuda/point_lists.hpp"
#include "track/cuda/reference_side.hpp"
#include "track/cuda/subset_search.hpp"

namespace dic::track::cuda {

/// A GPU that searches and refines points, and the memory that it works in.
struct Station {
  const kernels::Device device;
  kernels::Stream stream;   ///< of all measurements
  kernels::Event finished;  ///< of a share of work
  FrameUpload upload;
  DevicePoints points;
  SubsetSearch search;
  kernels::DeviceBuffer references, windows, peaks;  ///< of a search
  kernels::DeviceBuffer tasks, results;              ///< of a refinement
  Pool<ReferenceMemory> reference_memory;

  Station(const TrackOptions& options, const Points& on_host, const kernels::Device& d)
      : device(d), upload(d.index, options.refine.interpolation), points(on_host, stream), search(d) {}
};

/// What the anchors of one backend share. The first GPU leads: it knows everything of all points, and the
/// others take shares of the searches and refinements.
struct Workbench {
  const TrackOptions options;
  std::vector<std::unique_ptr<Station>> stations;  ///< at least one
  std::set<std::string> variants;                  ///< that ran

  // On the first GPU.
  DeviceCoarseSearch coarse;
  PointLists lists;
  kernels::DeviceBuffer starts, retry;  ///< PointStart
  kernels::DeviceBuffer coarse_field;   ///< u, then v
  kernels::DeviceBuffer marks;          ///< one or two bytes for every point
  kernels::DeviceBuffer memory;         ///< for launches that need some
  Pool<FieldMemory> field_memory;

  Workbench(const TrackOptions& options, const Points& points, const std::vector<kernels::Device>& devices);
  ~Workbench();

  Station& lead() const { return *stations.front(); }
};

void check_stop(const std::stop_token& stop);

}  // namespace dic::track::cuda

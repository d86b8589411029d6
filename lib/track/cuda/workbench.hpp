#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/thread_team.hpp"
#include "core/worker.hpp"
#include "track/cuda/coarse.hpp"
#include "track/cuda/device_field.hpp"
#include "track/cuda/image_bands.hpp"
#include "track/cuda/image_memory.hpp"
#include "track/cuda/places.hpp"
#include "track/cuda/point_lists.hpp"
#include "track/cuda/reference_side.hpp"
#include "track/cuda/shares.hpp"
#include "track/cuda/subset_search.hpp"

namespace dic::track::cuda {

/// A GPU that searches and refines its own points, and the memory that it works in.
struct Station {
  const int rank;
  const kernels::Device device;
  const bool reads_others;  ///< can GPUs read each other's memory?
  kernels::Stream stream;   ///< of searches and refinements
  kernels::Stream beside;   ///< of searches of subsets that are cut: few, in many launches
  kernels::Event placed;    ///< starts of a search
  kernels::Event searched;  ///< subsets that are cut
  kernels::Event accepted;  ///< the last results of own points
  kernels::Event heard;     ///< what others knew then of points around
  kernels::Event refined;   ///< most of a frame's own points
  int waves = 1;            ///< of recovery, that the next frame may need: 0 where the last one needed none
  bool settles = false;     ///< were these enough for the last frame?
  kernels::Event finished;  ///< all of them
  kernels::Stopwatch alone[2];  ///< from the start of a frame to where the others are waited for; by turns
  FrameUpload upload;
  DevicePoints points;
  SubsetSearch search, search_of_cut;
  std::optional<ImageBands> bands;  ///< where images are not there as a whole
  PointLists lists;
  std::weak_ptr<const ReferenceSide> divided;        ///< whose points the lists `whole` and `cut` have
  kernels::PointRange range_divided;                 ///< which of them
  kernels::DeviceBuffer starts[2], retry;            ///< PointStart; of this frame and the next, by turns
  kernels::DeviceBuffer coarse_field;                ///< u, then v
  kernels::DeviceBuffer references, windows, peaks;  ///< of a search
  kernels::DeviceBuffer tasks, results;              ///< of a refinement
  kernels::DeviceBuffer fresh;                       ///< a byte for every point
  kernels::DeviceBuffer supports;                    ///< of every point
  Pool<ReferenceMemory> reference_memory;
  std::set<std::string> variants;  ///< that ran

  Station(int number, const TrackOptions& options, const ImageMemory& images, const Points& on_host,
          const kernels::Device& d, bool readable);
  /// Null where images are there as a whole.
  ImageBands* image_bands() { return bands ? &*bands : nullptr; }
};

/// What the anchors of one backend share. Every GPU searches and refines its own points, and hears from the
/// others what it needs to know of the points around; the first makes the field of them all.
struct Workbench {
  const TrackOptions options;
  const ImageMemory images;  ///< of each GPU
  const Points& points;
  std::vector<std::unique_ptr<Station>> stations;  ///< at least one
  ThreadTeam team;                                 ///< a rank for every station
  Shares shares;                                   ///< that suited the last frames
  std::vector<double> seconds;                     ///< that stations took since these shares were made
  std::int64_t frames = 0;                         ///< that were measured

  // On the first GPU.
  DeviceCoarseSearch coarse;
  CoarseField coarse_found;  ///< by the last search
  /// Of fields: they are made while the next frame is searched, whose launches would keep them waiting.
  kernels::Stream judging{kernels::Priority::high};
  kernels::Event gathered;             ///< all points of a frame, so that the next may take their place
  std::shared_future<void> gathering;  ///< `gathered` is queued
  kernels::Event judged;               ///< a frame
  kernels::DeviceBuffer memory;        ///< for launches that need some
  Pool<FieldMemory> field_memory;
  FieldBlocks field_blocks;
  std::future<void> first_memory;  ///< of a field, is in the pools
  PlacesMemory places;             ///< where points lie in the latest image that became a reference
  Worker judge;                    ///< queues fields, while the next frame begins; ends before all else

  /// image: of the sequence's size and type.
  Workbench(const TrackOptions& options, const ImageView& image, const Points& points,
            const std::vector<kernels::Device>& devices);
  ~Workbench();

  /// What is queued on `stream` from now on may write over the points of the frame before.
  void wait_until_gathered(const kernels::Stream& stream) const {
    const std::shared_future<void> own = gathering;  // several threads ask
    if (own.valid()) own.get();
    stream.wait(gathered);
  }
  Station& lead() const { return *stations.front(); }
  /// Does each GPU have rows of frames from the host that the others have from it?
  bool share_rows() const { return lead().reads_others && images.rows == 0; }
  /// Rows of a frame that a GPU has from the host.
  kernels::RowRange rows_to_begin_with(const Station& station, int height) const {
    if (!share_rows()) return {0, height};
    const int all = static_cast<int>(stations.size());
    return {height * station.rank / all, height * (station.rank + 1) / all};
  }
};

void check_stop(const std::stop_token& stop);

}  // namespace dic::track::cuda

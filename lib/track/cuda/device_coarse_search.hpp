#pragma once

#include <dic/image.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/pyramid.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "track/coarse_search.hpp"
#include "track/cuda/subset_search.hpp"

namespace dic::track::cuda {

/// The image of which a pyramid is made, in device memory as a whole or in bands.
struct PyramidSource {
  using Visit = std::function<void(const ImageView& rows, int first)>;

  ImageView image;  ///< gives size and type; the pixels may be on the host
  /// Loads all rows into device memory, band by band, and calls visit for each band. All bands but the last
  /// have an even number of rows.
  std::function<void(const Visit&)> each_band;

  PyramidSource(const ImageView& whole)  // NOLINT: the usual case
      : image(whole), each_band([whole](const Visit& visit) { visit(whole, 0); }) {}
  PyramidSource(const ImageView& p, std::function<void(const Visit&)> bands)
      : image(p), each_band(std::move(bands)) {}
};

/// The pyramid of an image, in device memory (see PyramidSearch).
class DevicePyramid {
 public:
  /// Queues building the pyramid. Level 0 is left out if the search does not use it.
  void build(const PyramidSource& source, const CoarseSearch& search, const kernels::Stream& stream);
  /// A level, in device memory.
  const ImageView& level(int level) const { return levels_[level]; }

 private:
  void place_levels(int width, int height, int first, int count, const kernels::Stream& stream);

  std::vector<ImageView> levels_;
  kernels::DeviceBuffer pixels_, extrema_;
};

/// Memory that a CoarseReference works in.
struct CoarseMemory {
  DevicePyramid pyramid;
  std::vector<kernels::DeviceBuffer> roi;  ///< ROI by level
};

/// Pyramid and ROI of the reference in the coarse-to-fine search.
class CoarseReference {
 public:
  /// Queues building the pyramid. roi: u8, in host memory; may be empty.
  CoarseReference(const PyramidSource& source, ImageView roi, core::ThreadPool& pool, CoarseMemory& memory,
                  const kernels::Stream& stream);

  CoarseSearch& search() { return search_; }
  const ImageView& image(int level) const { return memory_.pyramid.level(level); }
  /// The ROI in a level, in device memory; empty = everywhere.
  const ImageView& roi(int level) const { return roi_[level]; }

 private:
  CoarseSearch search_;
  CoarseMemory& memory_;
  std::vector<ImageView> roi_;  ///< ROI by level
};

/// The coarse-to-fine search of a GPU: correlation on the device, selection of nodes on the host.
class DeviceCoarseSearch final : private PyramidSearch {
 public:
  explicit DeviceCoarseSearch(SubsetSearch& search) : search_(search) {}

  /// Finds the field from the reference to an image. Waits for the device.
  CoarseField run(CoarseReference& reference, const PyramidSource& current, const kernels::Stream& stream);
  /// Variants that ran in the last call.
  const std::set<std::string>& kernels() const { return kernels_; }

 private:
  std::vector<FoundShift> around(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                                 std::span<const Prediction> predictions, int range) override;
  std::vector<FoundShift> everywhere(const CoarseLattice& lattice) override;
  /// Consecutive nodes whose subsets have one shape.
  struct Group {
    SubsetShape shape;
    std::size_t first, count;
  };
  /// The nodes of a search, sorted by shape.
  struct Placement {
    std::vector<std::size_t> order;  ///< indices in the caller's list
    std::vector<Group> groups;
    PatchPosition *references, *windows;  ///< positions, in pinned memory
    const PatchPosition *device_references, *device_windows;
  };
  template <typename WindowOf>
  Placement place(const CoarseLattice& lattice, std::span<const std::int64_t> which,
                  const WindowOf& window_of);
  template <typename ShapeOf>
  std::vector<FoundShift> find(const CoarseLattice& lattice, const Placement& nodes, const ShapeOf& shape_of);
  std::vector<FoundShift> fetch(const Placement& nodes);

  SubsetSearch& search_;
  DevicePyramid current_;
  CoarseReference* reference_ = nullptr;     ///< argument of the call under way
  const kernels::Stream* stream_ = nullptr;  ///< argument of the call under way
  std::set<std::string> kernels_;
  kernels::PinnedBuffer host_positions_, host_peaks_;
  kernels::DeviceBuffer positions_, peaks_;
};

}  // namespace dic::track::cuda

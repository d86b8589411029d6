#include <dic/error.hpp>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "track/backend.hpp"
#include "track/cuda/point_refinement.hpp"
#include "track/cuda/start_search.hpp"
#include "track/noise.hpp"

// The CUDA backend: from the frame to the strain everything stays on the device. The host queues work, and
// waits only for the lengths of lists.
namespace dic::track {
namespace cuda {

namespace {

/// A picture on all GPUs.
struct FrameCopies final : Frame {
  std::vector<std::shared_ptr<const DeviceFrame>> on;  ///< by station
};

class DeviceResult final : public Result {
 public:
  DeviceResult(int device, DeviceField field, std::shared_ptr<const DeviceFrame> frame)
      : device_(device), field_(std::move(field)), frame_(std::move(frame)) {}

  Measured fetch() override {
    const kernels::DeviceScope scope(device_);
    return field_.read(*frame_);
  }

 private:
  int device_;  ///< the first
  DeviceField field_;
  std::shared_ptr<const DeviceFrame> frame_;
};

/// Queued work reads frames: their memory may be used again after what is queued at the end of the scope.
class Reading {
 public:
  explicit Reading(std::span<const Side> sides) : sides_(sides) {
    for (const Side& side : sides_) {
      side.reference.frame().hold(side.station.stream);
      side.current.hold(side.station.stream);
    }
  }
  ~Reading() {
    try {
      for (const Side& side : sides_) {
        side.reference.frame().release_after(side.station.stream);
        side.current.release_after(side.station.stream);
      }
    } catch (const DeviceError&) {  // the device is lost, and said so before
    }
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::span<const Side> sides_;
};

class CudaAnchor final : public Anchor {
 public:
  CudaAnchor(Workbench& bench, const FrameCopies& reference, const std::shared_ptr<const Subsets>& subsets)
      : bench_(bench) {
    for (std::size_t i = 0; i < bench.stations.size(); ++i) {
      Station& station = *bench.stations[i];
      const kernels::DeviceScope scope(station.device.index);
      references_.push_back(std::make_unique<ReferenceSide>(station.points, reference.on[i], subsets,
                                                            bench.options.refine,
                                                            station.reference_memory.lend(), station.stream));
    }
  }

  std::int64_t trackable() const override { return trackable_; }

  std::unique_ptr<Result> measure(std::shared_ptr<const Frame> current,
                                  const std::stop_token& stop) override {
    const int device = bench_.lead().device.index;
    const kernels::DeviceScope scope(device);
    const auto& copies = static_cast<const FrameCopies&>(*current);
    DeviceField field(bench_.lead().points.grid().nodes(), bench_.field_memory.lend());
    const std::vector<Side> sides = sides_of(copies);
    const Reading reading(sides);
    timed(field.memory().search, [&] {
      StartSearch search(bench_, sides, std::exchange(measured_before_, false), stop);
      starts_ = search.find(trackable_);
    });
    timed(field.memory().refine, [&] {
      PointRefinement(bench_, sides, stop).run(starts_);
      make_field(field);
    });
    timed(field.memory().strain, [&] { judge_field(field); });
    field.download(bench_.lead().stream);
    measured_before_ = true;
    return std::make_unique<DeviceResult>(device, std::move(field), copies.on.front());
  }

 private:
  std::vector<Side> sides_of(const FrameCopies& current) const {
    std::vector<Side> sides;
    for (std::size_t i = 0; i < references_.size(); ++i)
      sides.push_back({*bench_.stations[i], *references_[i], *current.on[i]});
    return sides;
  }

  template <typename Stage>
  void timed(kernels::Stopwatch& watch, const Stage& stage) {
    watch.start(bench_.lead().stream);
    stage();
    watch.stop(bench_.lead().stream);
  }

  void make_field(const DeviceField& field) {
    const ReferenceSide& reference = *references_.front();
    const auto& points = reference.points();
    const kernels::Stream& stream = bench_.lead().stream;
    const RefineOptions& refine = bench_.options.refine;
    if (bench_.options.noise >= 0)
      kernels::upload(field.noise(), &bench_.options.noise, sizeof(double), stream);
    else
      kernels::launch_noise(
          points, reference.tracked(), noise_gains(refine.interpolation), refine.subset / 2, field.noise(),
          bench_.memory.reserve(kernels::noise_workspace_bytes(points.count)), stream.handle());
    kernels::launch_field(points, reference.tracked(), reference.material(), field.noise(), field.arrays(),
                          stream.handle());
  }

  void judge_field(const DeviceField& field) {
    const kernels::DeviceGrid grid = bench_.lead().points.grid();
    const auto stream = bench_.lead().stream.handle();
    void* memory = bench_.memory.reserve(kernels::fields_workspace_bytes(grid));
    kernels::launch_mark_outliers(grid, field.arrays(), bench_.options.outliers, memory, stream);
    kernels::launch_strain(grid, field.arrays(), bench_.options.strain, memory, stream);
  }

  Workbench& bench_;
  std::vector<std::unique_ptr<ReferenceSide>> references_;  ///< by station
  const kernels::PointStart* starts_ = nullptr;
  std::int64_t trackable_ = 0;
  bool measured_before_ = false;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const TrackOptions& options, const Points& points, const std::vector<kernels::Device>& devices)
      : bench_(options, points, devices) {}

  std::shared_ptr<const Frame> take(ImageView picture) override {
    const std::lock_guard lock(taking_);
    auto copies = std::make_shared<FrameCopies>();
    for (const auto& station : bench_.stations) copies->on.push_back(station->upload.take(picture));
    return copies;
  }

  std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> reference, Subsets subsets) override {
    return std::make_unique<CudaAnchor>(bench_, static_cast<const FrameCopies&>(*reference),
                                        std::make_shared<const Subsets>(std::move(subsets)));
  }

  std::vector<std::string> kernels() const override {
    std::vector<std::string> all(bench_.variants.begin(), bench_.variants.end());
    all.push_back("cuda-icgn");
    return all;
  }
  std::string device() const override {
    std::string all;
    for (const auto& station : bench_.stations)
      all += (all.empty() ? "cuda:" : ",") + std::to_string(station->device.index);
    return all + ", " + bench_.lead().device.model;
  }

 private:
  Workbench bench_;
  std::mutex taking_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> open_cuda(const TrackOptions& options, const Points& points,
                                   std::span<const int> ordinals) {
  std::vector<kernels::Device> devices;
  for (const int ordinal : ordinals) devices.push_back(kernels::find_device(ordinal));
  if (ordinals.empty()) devices = kernels::find_devices();
  return std::make_unique<cuda::CudaBackend>(options, points, devices);
}

}  // namespace dic::track

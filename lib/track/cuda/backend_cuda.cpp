#include <algorithm>
#include <dic/error.hpp>
#include <dic/kernels/peer.hpp>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
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

/// An image on all GPUs.
struct FrameCopies final : Frame {
  std::vector<std::shared_ptr<const DeviceFrame>> on;  ///< by station
};

class DeviceResult final : public Result {
 public:
  /// made: when everything is queued that writes the field.
  DeviceResult(int device, std::shared_ptr<DeviceField> field, std::shared_ptr<const DeviceFrame> frame,
               std::future<void> made)
      : device_(device), field_(std::move(field)), frame_(std::move(frame)), made_(std::move(made)) {}

  std::shared_ptr<const Places> places() override {
    return std::make_shared<DevicePlaces>(field_, frame_->image.width, frame_->image.height);
  }
  std::int64_t measured_points() override {
    made_.get();
    return field_->measured_points();
  }

 private:
  FrameResult read() override {
    made_.get();
    const kernels::DeviceScope scope(device_);
    return field_->read(*frame_);
  }

  int device_;  ///< the first
  std::shared_ptr<DeviceField> field_;
  std::shared_ptr<const DeviceFrame> frame_;
  std::shared_future<void> made_;
};

/// Queued work of a GPU reads frames: their memory may be used again after what is queued when that ends, at
/// the latest with the scope.
class Reading {
 public:
  explicit Reading(const Side& side) : side_(side) {
    side.reference.frame().hold(side.station.stream);
    side.current.hold(side.station.stream);
  }
  ~Reading() {
    if (ended_) return;
    try {
      end();
    } catch (const DeviceError&) {  // the device is lost, and said so before
    }
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  /// What is queued by now is the last that reads them; to be said again if it was not.
  void end() {
    side_.reference.frame().release_after(side_.station.stream);
    side_.current.release_after(side_.station.stream);
    ended_ = true;
  }

 private:
  const Side& side_;
  bool ended_ = false;
};

void fill_field(Workbench& bench, const ReferenceSide& reference, const DeviceField& field) {
  const auto& points = reference.points();
  auto* tracked = static_cast<kernels::TrackedPoint*>(field.memory().tracked.data());
  const RefineOptions& refine = bench.options.refine;
  const ImageView& image = reference.frame().image;
  const auto stream = bench.judging.handle();
  kernels::launch_classify_lost(points, tracked, refine.subset / 2, image.width, image.height,
                                bench.memory.reserve(kernels::classify_lost_workspace_bytes(points.count)),
                                stream);
  if (bench.options.noise)
    kernels::upload(field.noise(), &*bench.options.noise, sizeof(double), bench.judging);
  else
    kernels::launch_estimate_noise(
        points, tracked, noise_gains(refine.interpolation), refine.subset / 2, field.noise(),
        bench.memory.reserve(kernels::noise_workspace_bytes(points.count)), stream);
  kernels::launch_fill_field(points, tracked, reference.material(), field.noise(), field.arrays(), stream);
}

void judge_field(Workbench& bench, const DeviceField& field) {
  const kernels::DeviceGrid grid = bench.lead().points.grid();
  const auto stream = bench.judging.handle();
  void* memory = bench.memory.reserve(kernels::fields_workspace_bytes(grid));
  kernels::launch_mark_outliers(grid, field.arrays(), bench.options.outliers, memory, stream);
  kernels::launch_strain(grid, field.arrays(), bench.options.strain, memory, stream);
}

/// Queues the field of the points that were gathered, on a stream of its own.
void make_field(Workbench& bench, const ReferenceSide& reference, const DeviceField& field) {
  const kernels::DeviceScope scope(bench.lead().device.index);
  kernels::Stopwatch& watch = field.memory().strain;
  field.memory().judging.mark(bench.judging);
  watch.start(bench.judging);
  fill_field(bench, reference, field);
  field.count_measured(bench.judging);
  judge_field(bench, field);
  watch.stop(bench.judging);
  field.download(bench.judging);
  bench.judged.record(bench.judging);
}

/// What a GPU has measured of a frame.
struct OwnPoints {
  std::shared_ptr<const ReferenceSide> reference;  ///< has them
  const kernels::TrackedPoint* tracked;
  kernels::PointRange own;
  const kernels::Event* finished;
};

/// Queues copying the points of all GPUs to where the field is made.
void gather(Workbench& bench, const std::vector<OwnPoints>& parts, const DeviceField& field) {
  const kernels::DeviceScope scope(bench.lead().device.index);
  auto* all = field.memory().tracked.reserve<kernels::TrackedPoint>(bench.points.size());
  for (const auto& [reference, tracked, own, finished] : parts) {
    bench.judging.wait(*finished);
    kernels::copy_between(all + own.first, tracked + own.first, own.count() * sizeof(*all),
                          bench.judging.handle());
  }
  bench.gathered.record(bench.judging);
}

/// Does the task, and lets those who wait for it know how it ended.
template <typename Task>
void keep_outcome(std::promise<void>& outcome, const Task& task) {
  try {
    task();
    outcome.set_value();
  } catch (...) {
    outcome.set_exception(std::current_exception());
    throw;
  }
}

class CudaAnchor final : public Anchor {
 public:
  /// places: of the points, once what is judged by now was judged; null in the original reference. before:
  /// whence the points go on moving; may be null.
  CudaAnchor(Workbench& bench, const FrameCopies& reference, const PlacesMemory* places,
             const CudaAnchor* before)
      : bench_(bench),
        shares_(before ? before->shares_ : bench.shares),
        coming_(before ? before->coming_ : bench.shares),
        measured_before_(before && before->measured_before_) {
    for (std::size_t i = 0; i < bench.stations.size(); ++i) {
      Station& station = *bench.stations[i];
      const kernels::DeviceScope scope(station.device.index);
      station.stream.wait(bench.judged);  // what lay in the memory of this anchor before; the places
      references_.push_back(std::make_shared<ReferenceSide>(station.points, reference.on[i], places,
                                                            bench.options.refine, station.image_bands(),
                                                            station.reference_memory.lend(), station.stream));
      if (measured_before_) references_.back()->go_on_from(*before->references_[i], station.stream);
    }
  }

  std::int64_t trackable() const override { return trackable_; }

  std::unique_ptr<Result> measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                  const NextFrame& next) override {
    const kernels::DeviceScope scope(bench_.lead().device.index);
    const auto& copies = static_cast<const FrameCopies&>(*current);
    bench_.first_memory.wait();
    const bool follows = std::exchange(measured_before_, false);
    Ahead begun = std::exchange(ahead_, {});
    if (!follows || begun.frame != current) begun = {};
    if (!begun.searched()) take_coming_shares();
    if (!begun.field) begun.field = new_field();
    begun.searches.resize(references_.size());
    const std::shared_ptr<DeviceField> field = begun.field;
    const std::vector<Side> sides = sides_of(copies);
    bench_.team.run([&](int rank) { measure_own(sides, rank, follows, begun, stop, next); });
    if (!bench_.lead().settles) ahead_ = {};
    auto gathered = std::make_shared<std::promise<void>>();
    bench_.gathering = gathered->get_future().share();
    std::future<void> made = bench_.judge.submit(
        [own = own_points(), bench = &bench_, reference = references_.front(), field, gathered] {
          keep_outcome(*gathered, [&] { gather(*bench, own, *field); });
          make_field(*bench, *reference, *field);
        });
    balance_shares();
    measured_before_ = true;
    return std::make_unique<DeviceResult>(bench_.lead().device.index, field, copies.on.front(),
                                          std::move(made));
  }

 private:
  std::vector<Side> sides_of(const FrameCopies& current) const {
    std::vector<Side> sides;
    for (std::size_t i = 0; i < references_.size(); ++i)
      sides.push_back({*bench_.stations[i], *references_[i], *current.on[i]});
    return sides;
  }

  /// What was done of a frame before its turn: mostly its search, so that the GPUs need not wait while the
  /// host hears how the frame before ended.
  struct Ahead {
    struct Search {
      std::optional<EarlySearch> queued;
      kernels::PointRange own;  ///< points that it is for
    };
    std::shared_ptr<const Frame> frame;
    std::shared_ptr<DeviceField> field;
    std::vector<Search> searches;  ///< by rank

    bool searched() const {
      return std::ranges::any_of(searches, [](const Search& search) { return search.queued.has_value(); });
    }
  };

  std::shared_ptr<DeviceField> new_field() {
    return std::make_shared<DeviceField>(bench_.points.shared_grid, bench_.field_memory.lend(),
                                         bench_.field_blocks);
  }

  static int turn(std::int64_t frame) { return static_cast<int>(frame % 2); }

  void balance_shares() {
    std::vector<double>& seconds = bench_.seconds;
    seconds.resize(bench_.stations.size());
    for (std::size_t i = 0; i < seconds.size(); ++i)
      seconds[i] += bench_.stations[i]->alone[turn(bench_.frames)].seconds();
    if (++bench_.frames % kFramesOfShares != 0) return;
    bench_.shares = coming_ = balanced(bench_.points, shares_, seconds);
    seconds.clear();
  }

  /// For a frame whose search is not begun: it would have to be done again.
  void take_coming_shares() {
    if (shares_ == coming_) return;
    shares_ = coming_;
    bench_.seconds.clear();
  }

  /// What a rank of the team does: searches and refines its own points. The first one's time counts.
  void measure_own(std::span<const Side> sides, int rank, bool follows, const Ahead& begun,
                   const std::stop_token& stop, const NextFrame& next) {
    const Side& side = sides[rank];
    Station& station = side.station;
    const kernels::DeviceScope scope(station.device.index);
    Reading reading(side);
    side.reference.begin_frame();
    side.reference.share(shares_[rank], known_points(bench_.points, shares_[rank]));
    FieldMemory& watches = begun.field->memory();
    StartSearch search(bench_, side, follows ? side.reference.tracked_before() : nullptr, stop);
    const Ahead::Search& early = begun.searches[rank];
    if (early.queued && early.own == shares_[rank])
      search.go_on(*early.queued);
    else
      find_starts(search, side, *begun.field, bench_.frames);
    if (rank == 0) watches.refine.start(station.stream);
    PointRefinement refinement(bench_, sides, rank, stop);
    bench_.wait_until_gathered(station.stream);
    refinement.begin(search.starts());  // before it is known whether others lost many points: that is rare
    station.alone[turn(bench_.frames)].stop(station.stream);
    if (search.without_many()) {
      search.find_those_without();
      refinement.begin(search.starts());
    }
    if (search.lost_many()) {
      search.find_lost();
      refinement.begin(search.starts());
    }
    bool looks_ahead = next && station.settles && shares_ == coming_;
    refinement.finish(search.starts(), [&] {
      if (rank == 0) watches.refine.stop(station.stream);
      station.finished.record(station.stream);
      reading.end();  // before the next search: a coming frame waits for this one's memory
      if (std::exchange(looks_ahead, false)) look_ahead(side, rank, next, stop);
    });
    if (rank == 0) trackable_ = search.trackable();
  }

  EarlySearch find_starts(StartSearch& search, const Side& side, const DeviceField& field,
                          std::int64_t frame) {
    Station& station = side.station;
    if (station.rank == 0) {
      field.memory().begun.mark(station.stream);
      field.memory().search.start(station.stream);
    }
    station.alone[turn(frame)].start(station.stream);
    const EarlySearch queued = search.find(turn(frame));
    if (station.rank == 0) field.memory().search.stop(station.stream);
    return queued;
  }

  /// Begins the next frame, if it is there and its search waits for nothing.
  void look_ahead(const Side& now, int rank, const NextFrame& next, const std::stop_token& stop) {
    if (rank == 0 && (ahead_.frame = next())) {
      ahead_.field = new_field();
      ahead_.searches.resize(references_.size());
    }
    bench_.team.barrier();
    if (!ahead_.frame) return;
    const auto& copies = static_cast<const FrameCopies&>(*ahead_.frame);
    const Side side{now.station, now.reference, *copies.on[rank]};
    StartSearch search(bench_, side, side.reference.tracked(), stop);
    if (!search.waits_for_nothing()) return;
    const Reading reading(side);
    ahead_.searches[rank] = {find_starts(search, side, *ahead_.field, bench_.frames + 1),
                             side.reference.points().own};
  }

  std::vector<OwnPoints> own_points() const {
    std::vector<OwnPoints> all;
    for (std::size_t i = 0; i < references_.size(); ++i)
      all.push_back({references_[i], references_[i]->tracked(), references_[i]->points().own,
                     &bench_.stations[i]->finished});
    return all;
  }

  Workbench& bench_;
  std::vector<std::shared_ptr<ReferenceSide>> references_;  ///< by station
  Shares shares_;                                           ///< of the frame that was begun last
  Shares coming_;                                           ///< of the next that is not begun
  std::int64_t trackable_ = 0;
  bool measured_before_;
  Ahead ahead_;
};

int stager_threads(const TrackOptions& options) {
  constexpr int most = 8;  // copy 16.8 MB in 0.5 ms, 4 in 0.8
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::min(most, options.threads > 0 ? options.threads : cores);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const TrackOptions& options, const ImageView& image, const Points& points,
              const std::vector<kernels::Device>& devices)
      : bench_(options, image, points, devices), stager_(stager_threads(options), bench_.images.rows > 0) {
    bench_.first_memory = bench_.judge.submit([this] {  // of a field: it takes as long as a measurement
      const kernels::DeviceScope scope(bench_.lead().device.index);
      DeviceField(bench_.points.shared_grid, bench_.field_memory.lend(), bench_.field_blocks);
    });
  }

  std::shared_ptr<const Frame> take(ImageView image) override {
    const std::lock_guard lock(taking_);
    const StagedRows staged = stager_.stage(image);
    std::vector<ArrivingFrame> frames;
    for (const auto& station : bench_.stations)
      frames.push_back(
          station->upload.begin(image, staged, bench_.rows_to_begin_with(*station, image.height)));
    std::span<const ArrivingFrame> sharing;
    if (bench_.share_rows()) sharing = frames;
    for (const auto& station : bench_.stations) station->upload.send(frames[station->rank], sharing);
    auto copies = std::make_shared<FrameCopies>();
    for (const auto& station : bench_.stations)
      copies->on.push_back(station->upload.finish(frames[station->rank], sharing));
    return copies;
  }

  std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> reference, Image roi) override {
    roi_ = std::move(roi);
    for (const auto& station : bench_.stations) {
      const kernels::DeviceScope scope(station->device.index);
      station->points.set_roi(roi_, station->stream);
    }
    return std::make_unique<CudaAnchor>(bench_, static_cast<const FrameCopies&>(*reference), nullptr,
                                        nullptr);
  }
  std::unique_ptr<Anchor> anchor(std::shared_ptr<const Frame> image, const Places& places,
                                 const Anchor* before) override {
    follow(static_cast<const DevicePlaces&>(places));
    return std::make_unique<CudaAnchor>(bench_, static_cast<const FrameCopies&>(*image), &bench_.places,
                                        static_cast<const CudaAnchor*>(before));
  }

  std::vector<std::string> kernels() const override {
    std::set<std::string> all{"cuda-icgn"};
    for (const auto& station : bench_.stations)
      all.insert(station->variants.begin(), station->variants.end());
    return {all.begin(), all.end()};
  }
  std::string device() const override {
    std::string all;
    for (const auto& station : bench_.stations)
      all += (all.empty() ? "cuda:" : ",") + std::to_string(station->device.index);
    return all + ", " + bench_.lead().device.model;
  }
  std::string note() const override { return bench_.images.note(bench_.options); }

 private:
  /// Queues where the points lie in a later image, behind all fields that were begun.
  void follow(const DevicePlaces& where) {
    const auto queue = [&] {
      const kernels::DeviceScope scope(bench_.lead().device.index);
      const kernels::GridPoints points = bench_.lead().points.points();
      int* x = bench_.places.centres.reserve<int>(2 * points.count);
      auto* material = bench_.places.material.reserve<MaterialPoint>(points.count);
      kernels::launch_follow_points(points, where.field->arrays(), where.width, where.height, x,
                                    x + points.count, material, bench_.judging.handle());
      bench_.judged.record(bench_.judging);
    };
    bench_.judge.submit(queue).get();
  }

  Workbench bench_;
  Image roi_;  ///< of the original reference
  std::mutex taking_;
  Stager stager_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> open_cuda(const TrackOptions& options, const ImageView& image, const Points& points,
                                   std::span<const int> ordinals) {
  std::vector<kernels::Device> devices;
  for (const int ordinal : ordinals) devices.push_back(kernels::find_device(ordinal));
  if (ordinals.empty()) devices = kernels::find_devices();
  const kernels::DeviceScope first(devices.front().index);
  return std::make_unique<cuda::CudaBackend>(options, image, points, devices);
}

}  // namespace dic::track

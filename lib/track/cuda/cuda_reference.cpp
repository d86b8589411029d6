#include "track/cuda/cuda_reference.hpp"

#include <dic/error.hpp>
#include <future>
#include <utility>

#include "track/cuda/multi_gpu/halo_exchange.hpp"
#include "track/cuda/point_refinement.hpp"

namespace dic::track::cuda {
namespace {

class CudaMeasurement final : public Measurement {
 public:
  /// queued: ready when all work that writes the field is queued.
  CudaMeasurement(int device, std::shared_ptr<DeviceField> field, std::shared_ptr<const DeviceFrame> frame,
                  std::future<void> queued)
      : device_(device), field_(std::move(field)), frame_(std::move(frame)), queued_(std::move(queued)) {}

  std::shared_ptr<const PointPositions> positions() override {
    return std::make_shared<DevicePositions>(field_, frame_->image.size());
  }
  PointCounts counts() override {
    queued_.get();
    return field_->counts();
  }

 private:
  MeasuredFrame read() override {
    queued_.get();
    const kernels::DeviceScope scope(device_);
    return {field_->read(*frame_)};
  }

  int device_;  ///< index of the first GPU
  std::shared_ptr<DeviceField> field_;
  std::shared_ptr<const DeviceFrame> frame_;
  std::shared_future<void> queued_;
};

/// Keeps the memory of a frame's images until queued work has read them: until release(), at the latest
/// until the end of the scope.
class ImageLease {
 public:
  explicit ImageLease(const GpuFrame& frame) : frame_(frame) { frame_.wait_ready(); }
  ~ImageLease() {
    if (released_) return;
    try {
      frame_.release_images();
    } catch (const DeviceError&) {  // the device is lost, which whoever queued the work was told
    }
  }
  ImageLease(const ImageLease&) = delete;
  ImageLease& operator=(const ImageLease&) = delete;

  /// Declares that the work queued so far is the last that reads the images. May be called again after more
  /// work.
  void release() {
    frame_.release_images();
    released_ = true;
  }

 private:
  const GpuFrame& frame_;
  bool released_ = false;
};

}  // namespace

CudaReference::CudaReference(TrackerContext& context, const GroupFrame& image,
                             const PositionsMemory* positions, const CudaReference* before)
    : context_(context),
      partition_(before ? before->partition_ : context.gpus().balancer().latest()),
      next_partition_(before ? before->next_partition_ : context.gpus().balancer().latest()),
      reference_noise_(image.noise),
      measured_before_(before && before->measured_before_),
      lookahead_(context.gpus().size()) {
  for (int rank = 0; rank < context.gpus().size(); ++rank) {
    GpuContext& gpu = context.gpus()[rank];
    const kernels::DeviceScope scope(gpu.device().index);
    context.fields().wait_until_made(gpu.stream());
    references_.push_back(gpu.make_reference(image.on_gpu[rank], positions, context.options().refine));
    if (measured_before_) references_.back()->continue_from(*before->references_[rank], gpu.stream());
  }
}

std::unique_ptr<Measurement> CudaReference::measure(std::shared_ptr<const Frame> current,
                                                    const std::stop_token& stop, const NextFrame& next) {
  const GpuContext& first = context_.gpus().first();
  const kernels::DeviceScope scope(first.device().index);
  const QueuedFrame queued_frame = begin(current, stop, next);
  context_.gpus().run([&](int rank) { measure_on(rank, queued_frame); });
  measured_before_ = true;
  lost_ = next_lost_;
  if (!context_.gpus().first().refinement().first_waves_sufficed) lookahead_.forget();
  const std::shared_ptr<DeviceField> field = queued_frame.begun.field;
  const auto& frame = static_cast<const GroupFrame&>(*current);
  const std::shared_ptr<const DeviceFrame>& on_first = frame.on_gpu.front();
  std::future<void> queued = context_.fields().submit(
      measured_parts(), on_first, {reference_noise_, frame.noise, !frame.suspicious}, field);
  balance_load();
  return std::make_unique<CudaMeasurement>(first.device().index, field, on_first, std::move(queued));
}

bool CudaReference::start_from(const ActiveReference& other) {
  const auto* of_gpus = dynamic_cast<const CudaReference*>(&other);
  if (!of_gpus || !of_gpus->measured_before_ || of_gpus->context_.points().size() != context_.points().size())
    return false;
  const GpuGroup& sources = of_gpus->context_.gpus();
  for (int rank = 0; rank < context_.gpus().size(); ++rank) {
    GpuContext& gpu = context_.gpus()[rank];
    const kernels::DeviceScope scope(gpu.device().index);
    for (int source = 0; source < sources.size(); ++source) {
      gpu.stream().wait(sources[source].refinement().finished);
      references_[rank]->start_from(*of_gpus->references_[source], gpu.stream());
    }
  }
  measured_before_ = true;
  return true;
}

void CudaReference::limit_effort(std::span<const Effort> efforts) {
  lookahead_.forget();
  for (int rank = 0; rank < context_.gpus().size(); ++rank) {
    GpuContext& gpu = context_.gpus()[rank];
    const kernels::DeviceScope scope(gpu.device().index);
    context_.fields().wait_until_made(gpu.stream());  // the last frame's field reads the subsets
    references_[rank]->limit_effort(efforts, gpu.stream());
    gpu.search().forget_listed();
  }
}

/// Does the steps of one frame on one GPU.
void CudaReference::measure_on(int rank, const QueuedFrame& queued_frame) {
  const GpuFrame& frame = queued_frame.frames[rank];
  auto& [gpu, reference, image] = frame;
  FieldMemory& times = queued_frame.begun.field->memory();
  const std::int64_t number = context_.frames_measured();
  ImageLease images(frame);
  reference.begin_frame();
  if (rank == 0) context_.features().begin_frame();
  reference.set_partition(partition_[rank], known_points(context_.points(), partition_[rank]));

  StartSearch search(context_, frame, number, queued_frame.continues ? reference.tracked_before() : nullptr,
                     queued_frame.stop);
  if (const QueuedSearch* queued = queued_frame.begun.search(rank, partition_[rank]))
    search.resume(*queued);
  else
    begin_search(search, gpu, *queued_frame.begun.field, number);
  if (rank == 0) times.refine.start(gpu.stream());

  bool looks_ahead =
      queued_frame.next && gpu.refinement().first_waves_sufficed && partition_ == next_partition_;
  const auto before_wait = [&] {
    if (rank == 0) times.refine.stop(gpu.stream());
    gpu.refinement().finished.record(gpu.stream());
    images.release();  // released before the next search, because a coming frame waits for this memory
    if (std::exchange(looks_ahead, false)) look_ahead(frame, queued_frame);
  };
  HaloExchange halo(context_.gpus().team(), queued_frame.frames, rank, context_.gpus().peer_access());
  PointRefinement refinement(context_, frame, halo, search.starts(), before_wait, queued_frame.stop);
  context_.fields().wait_until_gathered(gpu.stream());
  LostMemory lost = lost_;
  bool has_started = lost.is_due == 0;
  if (has_started) refinement.start_over();  // already, since the search is almost always good enough
  gpu.part_time(number).stop(gpu.stream());
  const NotFound not_found = finish_start_search(search, lost, [&] {
    refinement.start_over();
    has_started = true;
  });
  if (!has_started) refinement.start_over();
  const bool many_not_found = finish_refinement(refinement, search, not_found, lost);

  if (rank != 0) return;
  next_lost_ = lost;
  surely_found_ = context_.options().search == std::nullopt && !many_not_found;
}

CudaReference::QueuedFrame CudaReference::begin(const std::shared_ptr<const Frame>& current,
                                                const std::stop_token& stop, const NextFrame& next) {
  if (!measured_before_) lookahead_.forget();  // the frame before was cancelled
  QueuedFrame queued_frame{{}, lookahead_.take(current), std::exchange(measured_before_, false), stop, next};
  if (!queued_frame.begun.field) queued_frame.begun.field = context_.fields().new_field();
  if (!queued_frame.begun.searched() && partition_ != next_partition_) {
    partition_ = next_partition_;
    context_.gpus().balancer().restart();
  }
  const auto& frames = static_cast<const GroupFrame&>(*current);
  for (int rank = 0; rank < context_.gpus().size(); ++rank)
    queued_frame.frames.push_back({context_.gpus()[rank], *references_[rank], *frames.on_gpu[rank]});
  return queued_frame;
}

void CudaReference::begin_search(StartSearch& search, GpuContext& gpu, DeviceField& field,
                                 std::int64_t number) {
  FieldMemory& times = field.memory();
  if (gpu.rank() == 0) {
    times.search_begin.record(gpu.stream());
    times.search.start(gpu.stream());
  }
  gpu.part_time(number).start(gpu.stream());
  begin_start_search(search, lost_);
  if (gpu.rank() == 0) times.search.stop(gpu.stream());
}

/// Queues the search of the next frame, if that frame has arrived and its search need not wait.
void CudaReference::look_ahead(const GpuFrame& now, const QueuedFrame& queued_frame) {
  const int rank = now.gpu.rank();
  if (rank == 0)
    if (auto next = queued_frame.next()) lookahead_.begin(std::move(next), context_.fields().new_field());
  context_.gpus().team().barrier();
  if (!lookahead_.frame()) return;
  const GpuFrame frame{now.gpu, now.reference, *lookahead_.frame()->on_gpu[rank]};
  const std::int64_t number = context_.frames_measured() + 1;
  StartSearch search(context_, frame, number, now.reference.tracked(), queued_frame.stop);
  // All GPUs or none, because they exchange what tells the common motion.
  if (context_.gpus().team().sum(search.waits_for_nothing() ? 0 : 1) > 0) return;
  const ImageLease images(frame);
  begin_search(search, now.gpu, lookahead_.field(), number);
  lookahead_.add(rank, search.queued());
}

std::vector<MeasuredPart> CudaReference::measured_parts() const {
  std::vector<MeasuredPart> parts;
  for (int rank = 0; rank < context_.gpus().size(); ++rank)
    parts.push_back({references_[rank], references_[rank]->tracked(), references_[rank]->points().own,
                     &context_.gpus()[rank].refinement().finished});
  return parts;
}

void CudaReference::balance_load() {
  const GpuGroup& gpus = context_.gpus();
  std::vector<double> seconds;
  if (gpus.size() > 1)
    for (int rank = 0; rank < gpus.size(); ++rank)
      seconds.push_back(gpus[rank].part_time(context_.frames_measured()).seconds());
  context_.gpus().balancer().count_frame(partition_, seconds, next_partition_);
  context_.count_frame();
}

}  // namespace dic::track::cuda

#include "track/cuda/field_pipeline.hpp"

#include <dic/kernels/fields.hpp>
#include <dic/kernels/peer.hpp>
#include <dic/kernels/points.hpp>
#include <dic/kernels/trust.hpp>
#include <utility>

#include "analysis/noise.hpp"

namespace dic::track::cuda {
namespace {

/// Does the task, and passes its outcome to all who wait for it.
template <typename Task>
void run_and_report(std::promise<void>& outcome, const Task& task) {
  try {
    task();
    outcome.set_value();
  } catch (...) {
    outcome.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace

FieldPipeline::FieldPipeline(const TrackOptions& options, const ImageMemory& memory,
                             std::shared_ptr<const Grid> grid, int device, const DevicePoints& points,
                             core::ThreadPool& pool)
    : options_(options),
      grid_(std::move(grid)),
      device_(device),
      points_(points),
      pool_(pool),
      in_bands_(memory.in_bands()),
      lanes_{{{options, memory}, {options, memory}}} {
  // The first allocation takes as long as a measurement, and is made while the first images arrive.
  first_memory_ = lanes_[0].worker.submit([this] {
    const kernels::DeviceScope scope(device_);
    DeviceField(grid_, memory_.acquire(), blocks_, pool_);
  });
}

FieldPipeline::~FieldPipeline() {
  if (last_.valid()) last_.wait();  // the lanes use each other
}

std::shared_ptr<DeviceField> FieldPipeline::new_field() {
  first_memory_.wait();
  return std::make_shared<DeviceField>(grid_, memory_.acquire(), blocks_, pool_);
}

std::future<void> FieldPipeline::submit(std::vector<MeasuredPart> parts,
                                        std::shared_ptr<const DeviceFrame> frame, const ImageNoises& noises,
                                        std::shared_ptr<DeviceField> field) {
  Lane& lane = lane_of(submitted_);
  const kernels::Event& before = lane_of(submitted_ + 1).made;
  ++submitted_;
  gather(parts, *field, lane.gathered);
  auto queued = std::make_shared<std::promise<void>>();
  const auto last = std::exchange(last_, queued->get_future().share());
  const auto work = [this, &lane, &before, last, parts = std::move(parts), frame = std::move(frame), noises,
                     field = std::move(field)] {
    const kernels::DeviceScope scope(device_);
    const DeviceReference& reference = *parts.front().reference;
    lane.stream.wait(lane.gathered);
    measure_parts(lane, reference, *frame, *field);
    if (last.valid()) last.wait();
    lane.stream.wait(before);
    reference.frame().release_after_field(lane.stream);
    frame->release_after_field(lane.stream);
    make(lane, reference, noises, *field);
  };
  return lane.worker.submit([queued, work] { run_and_report(*queued, work); });
}

const PositionsMemory& FieldPipeline::locate(const DevicePositions& positions) {
  Lane& lane = lane_of(submitted_ - 1);  // its last frame waits for those of the other lane
  const auto queue = [&] {
    const kernels::DeviceScope scope(device_);
    const kernels::GridPoints points = points_.points();
    int* x = positions_.centres.reserve<int>(2 * points.count);
    auto* material = positions_.material.reserve<MaterialPoint>(points.count);
    positions_.are_followed = positions.field != nullptr;
    if (positions.field)
      kernels::launch_follow_points(points, positions.field->arrays(), positions.image,
                                    {x, x + points.count, material}, lane.stream.handle());
    else
      upload(positions.placed, x, material, lane.stream);
    lane.made.record(lane.stream);
  };
  lane.worker.submit(queue).get();
  return positions_;
}

/// Copies points to the GPU: the centres, x and then y, and the material points. Waits for the stream.
void FieldPipeline::upload(const LocatedPoints& points, int* centres, MaterialPoint* material,
                           const kernels::Stream& stream) const {
  const std::size_t n = points.x.size();
  kernels::upload(centres, points.x.data(), n * sizeof(int), stream);
  kernels::upload(centres + n, points.y.data(), n * sizeof(int), stream);
  const std::vector<MaterialPoint> unmoved(points.material.empty() ? n : 0);
  kernels::upload(material, points.material.empty() ? unmoved.data() : points.material.data(),
                  n * sizeof(MaterialPoint), stream);
  stream.synchronize("the positions of points");
}

/// Queues copying the points of all GPUs to where the field is made.
void FieldPipeline::gather(const std::vector<MeasuredPart>& parts, const DeviceField& field,
                           kernels::Event& gathered) {
  auto* all = field.memory().tracked.reserve<kernels::TrackedPoint>(points_.size());
  gathering_.wait(field.memory().done);  // a cancelled frame may still use this memory
  for (const auto& [reference, tracked, own, finished] : parts) {
    gathering_.wait(*finished);
    kernels::copy_between(all + own.first, tracked + own.first, own.count() * sizeof(*all),
                          gathering_.handle());
  }
  gathered.record(gathering_);
  gathered_.record(gathering_);
}

/// Measures parts of subsets while the next frame is searched, whose starts are therefore the results of
/// whole subsets.
void FieldPipeline::measure_parts(Lane& lane, const DeviceReference& reference, const DeviceFrame& frame,
                                  const DeviceField& field) {
  kernels::Stopwatch& watch = field.memory().split;
  watch.start(lane.stream);
  if (options_.split)
    lane.split.run(reference, frame, static_cast<kernels::TrackedPoint*>(field.memory().tracked.data()),
                   lane.stream);
  watch.stop(lane.stream);
}

/// Queues the field of the points that were gathered, and its copy to the host.
void FieldPipeline::make(Lane& lane, const DeviceReference& reference, const ImageNoises& noises,
                         const DeviceField& field) {
  kernels::Stopwatch& watch = field.memory().strain;
  field.memory().postprocessing_begin.record(lane.stream);
  watch.start(lane.stream);
  fill(lane, reference, noises, field);
  field.count_nodes(lane.stream);
  find_outliers_and_strain(lane, field);
  watch.stop(lane.stream);
  field.download(lane.stream);
  lane.made.record(lane.stream);
}

void FieldPipeline::fill(Lane& lane, const DeviceReference& reference, const ImageNoises& noises,
                         const DeviceField& field) {
  const auto& points = reference.points();
  auto* tracked = static_cast<kernels::TrackedPoint*>(field.memory().tracked.data());
  const RefineOptions& refine = options_.refine;
  const ImageView& image = reference.frame().image;
  const auto stream = lane.stream.handle();
  kernels::launch_judge_points({points, tracked, points_.alternatives(), refine.subset, options_.step},
                               lane.workspace.reserve(kernels::trust_workspace_bytes(points.count)), stream);
  kernels::launch_classify_lost(points, tracked, refine.subset / 2, image.width, image.height,
                                lane.workspace.reserve(kernels::classify_lost_workspace_bytes(points.count)),
                                stream);
  if (options_.noise)
    kernels::upload(field.noise(), &*options_.noise, sizeof(double), lane.stream);
  else
    kernels::launch_estimate_noise(
        points, tracked, analysis::noise_gains(refine.interpolation, refine.smoothing), refine.subset / 2,
        field.noise(), lane.workspace.reserve(kernels::noise_workspace_bytes(points.count)), stream);
  kernels::launch_fill_field(points, tracked, reference.material(),
                             analysis::noise_model(options_, image, noises), field.arrays(),
                             lane.workspace.reserve(kernels::fill_field_workspace_bytes(points)), stream);
}

void FieldPipeline::find_outliers_and_strain(Lane& lane, const DeviceField& field) {
  const kernels::DeviceGrid grid = points_.grid();
  const auto stream = lane.stream.handle();
  void* workspace = lane.workspace.reserve(kernels::fields_workspace_bytes(grid));
  kernels::launch_mark_outliers(grid, field.arrays(), options_.outliers, workspace, stream);
  kernels::launch_strain(grid, field.arrays(), options_.strain,
                         {options_.refine.subset, options_.refine.order, options_.refine.weights}, workspace,
                         stream);
}

}  // namespace dic::track::cuda

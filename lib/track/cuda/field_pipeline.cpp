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
      split_(options, memory) {
  // The first allocation takes as long as a measurement, and is made while the first images arrive.
  first_memory_ = worker_.submit([this] {
    const kernels::DeviceScope scope(device_);
    DeviceField(grid_, memory_.acquire(), blocks_, pool_);
  });
}

std::shared_ptr<DeviceField> FieldPipeline::new_field() {
  first_memory_.wait();
  return std::make_shared<DeviceField>(grid_, memory_.acquire(), blocks_, pool_);
}

std::future<void> FieldPipeline::submit(std::vector<MeasuredPart> parts,
                                        std::shared_ptr<const DeviceFrame> frame, const ImageNoises& noises,
                                        std::shared_ptr<DeviceField> field) {
  auto gathered = std::make_shared<std::promise<void>>();
  gathering_ = gathered->get_future().share();
  return worker_.submit(
      [this, parts = std::move(parts), frame = std::move(frame), noises, field = std::move(field), gathered] {
        const kernels::DeviceScope scope(device_);
        run_and_report(*gathered, [&] { gather(parts, *field); });
        measure_parts(*parts.front().reference, *frame, *field);
        make(*parts.front().reference, noises, *field);
      });
}

void FieldPipeline::wait_until_gathered(const kernels::Stream& stream) const {
  const std::shared_future<void> gathering = gathering_;  // a copy, because several threads call this
  if (gathering.valid()) gathering.get();
  stream.wait(gathered_);
}

const PositionsMemory& FieldPipeline::locate(const DevicePositions& positions) {
  const auto queue = [&] {
    const kernels::DeviceScope scope(device_);
    const kernels::GridPoints points = points_.points();
    int* x = positions_.centres.reserve<int>(2 * points.count);
    auto* material = positions_.material.reserve<MaterialPoint>(points.count);
    positions_.are_followed = positions.field != nullptr;
    if (positions.field)
      kernels::launch_follow_points(points, positions.field->arrays(), positions.image,
                                    {x, x + points.count, material}, stream_.handle());
    else
      upload(positions.placed, x, material);
    made_.record(stream_);
  };
  worker_.submit(queue).get();
  return positions_;
}

/// Copies points to the GPU: the centres, x and then y, and the material points. Waits for the stream.
void FieldPipeline::upload(const LocatedPoints& points, int* centres, MaterialPoint* material) const {
  const std::size_t n = points.x.size();
  kernels::upload(centres, points.x.data(), n * sizeof(int), stream_);
  kernels::upload(centres + n, points.y.data(), n * sizeof(int), stream_);
  const std::vector<MaterialPoint> unmoved(points.material.empty() ? n : 0);
  kernels::upload(material, points.material.empty() ? unmoved.data() : points.material.data(),
                  n * sizeof(MaterialPoint), stream_);
  stream_.synchronize("the positions of points");
}

/// Queues copying the points of all GPUs to where the field is made.
void FieldPipeline::gather(const std::vector<MeasuredPart>& parts, const DeviceField& field) {
  auto* all = field.memory().tracked.reserve<kernels::TrackedPoint>(points_.size());
  for (const auto& [reference, tracked, own, finished] : parts) {
    stream_.wait(*finished);
    kernels::copy_between(all + own.first, tracked + own.first, own.count() * sizeof(*all), stream_.handle());
  }
  gathered_.record(stream_);
}

/// Measures parts of subsets while the next frame is searched, whose starts are therefore the results of
/// whole subsets.
void FieldPipeline::measure_parts(const DeviceReference& reference, const DeviceFrame& frame,
                                  const DeviceField& field) {
  kernels::Stopwatch& watch = field.memory().split;
  watch.start(stream_);
  if (options_.split) {
    auto* tracked = static_cast<kernels::TrackedPoint*>(field.memory().tracked.data());
    split_.run(reference, frame, tracked, stream_);
    reference.frame().release_after_field(stream_);
    frame.release_after_field(stream_);
  }
  watch.stop(stream_);
}

/// Queues the field of the points that were gathered, and its copy to the host.
void FieldPipeline::make(const DeviceReference& reference, const ImageNoises& noises,
                         const DeviceField& field) {
  kernels::Stopwatch& watch = field.memory().strain;
  field.memory().postprocessing_begin.record(stream_);
  watch.start(stream_);
  fill(reference, noises, field);
  field.count_nodes(stream_);
  find_outliers_and_strain(field);
  watch.stop(stream_);
  field.download(stream_);
  made_.record(stream_);
}

void FieldPipeline::fill(const DeviceReference& reference, const ImageNoises& noises,
                         const DeviceField& field) {
  const auto& points = reference.points();
  auto* tracked = static_cast<kernels::TrackedPoint*>(field.memory().tracked.data());
  const RefineOptions& refine = options_.refine;
  const ImageView& image = reference.frame().image;
  const auto stream = stream_.handle();
  kernels::launch_judge_points({points, tracked, points_.alternatives(), refine.subset, options_.step},
                               workspace_.reserve(kernels::trust_workspace_bytes(points.count)), stream);
  kernels::launch_classify_lost(points, tracked, refine.subset / 2, image.width, image.height,
                                workspace_.reserve(kernels::classify_lost_workspace_bytes(points.count)),
                                stream);
  if (options_.noise)
    kernels::upload(field.noise(), &*options_.noise, sizeof(double), stream_);
  else
    kernels::launch_estimate_noise(
        points, tracked, analysis::noise_gains(refine.interpolation, refine.smoothing), refine.subset / 2,
        field.noise(), workspace_.reserve(kernels::noise_workspace_bytes(points.count)), stream);
  kernels::launch_fill_field(points, tracked, reference.material(),
                             analysis::noise_model(options_, image, noises), field.arrays(),
                             workspace_.reserve(kernels::fill_field_workspace_bytes(points)), stream);
}

void FieldPipeline::find_outliers_and_strain(const DeviceField& field) {
  const kernels::DeviceGrid grid = points_.grid();
  const auto stream = stream_.handle();
  void* workspace = workspace_.reserve(kernels::fields_workspace_bytes(grid));
  kernels::launch_mark_outliers(grid, field.arrays(), options_.outliers, workspace, stream);
  kernels::launch_strain(grid, field.arrays(), options_.strain,
                         {options_.refine.subset, options_.refine.order, options_.refine.weights}, workspace,
                         stream);
}

}  // namespace dic::track::cuda

#include <algorithm>
#include <dic/kernels/refine.hpp>
#include <dic/kernels/saturated.hpp>
#include <dic/shared/icgn.hpp>
#include <vector>

#include "refine/backend.hpp"
#include "refine/cuda/saturated_refinement.hpp"

// The CUDA backend. The planes of the reference and of the current image and all prepared subsets stay on the
// device; a call only uploads starts and downloads results.
namespace dic::refine {
namespace {

using kernels::DeviceBuffer;
using kernels::PlaneLayout;
using kernels::PreparedSubset;
using kernels::RefineResult;
using kernels::RefineTask;

/// Most tasks that are in flight at the same time.
constexpr std::size_t most_tasks = std::size_t{1} << 20;

template <typename T>
T* reserve(DeviceBuffer& buffer, std::size_t count) {
  return static_cast<T*>(buffer.reserve(count * sizeof(T)));
}

RefineTask task_of(std::int64_t point, const ShapeParameters& start) {
  const kernels::SplitShape s = kernels::split(start);
  return {.point = static_cast<std::int32_t>(point), .u = s.u, .v = s.v, .start = s.rest};
}

RefinedPoint point_of(const RefineTask& task, const RefineResult& r) {
  RefinedPoint out;
  out.shape = kernels::joined(task.u, task.v, r.shape);
  out.status = r.status;
  out.zncc = r.zncc;
  out.residual_sd = r.residual_sd;
  out.unit_sigma_u = r.unit_sigma_u;
  out.unit_sigma_v = r.unit_sigma_v;
  out.unit_covariance = r.unit_covariance;
  out.gradient_noise = r.gradient_noise;
  out.iterations = r.iterations;
  return out;
}

/// A copy of a host image in device memory.
class DeviceImage {
 public:
  ImageView upload(const ImageView& image, const kernels::Stream& stream) {
    const std::size_t row = image.width * size_of(image.type);
    void* target = pixels_.reserve(row * image.height);
    kernels::upload(target, row, image.data, image.row_bytes, row, image.height, stream);
    ImageView view = image;
    view.data = target;
    view.row_bytes = static_cast<std::ptrdiff_t>(row);
    return view;
  }

 private:
  DeviceBuffer pixels_;
};

/// The saturated pixels of an image.
class SaturatedImage {
 public:
  /// Finds the saturated pixels of an image in device memory. Waits for the stream.
  void find(const ImageView& image, const kernels::Stream& stream) {
    found_ = {nullptr, image.width, image.height};
    const auto words = static_cast<std::size_t>(found_.size());
    auto* first = reserve<std::uint32_t>(words_, words);
    auto* any = any_.reserve<std::int32_t>(1);
    *any = 0;
    kernels::launch_find_saturated(image, first, reserve<std::uint32_t>(scratch_, words), any,
                                   stream.handle());
    stream.synchronize("saturated pixels");
    if (*any != 0) found_.words = first;
  }
  const kernels::SaturatedPixels& found() const { return found_; }

 private:
  DeviceBuffer words_, scratch_;
  kernels::PinnedBuffer any_;
  kernels::SaturatedPixels found_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const RefineOptions& options, int device) : options_(options), device_(device) {}

  void set_reference(ImageView image, std::span<const int> x, std::span<const int> y,
                     ImageView roi) override {
    const kernels::DeviceScope scope(device_);
    reference_ = {};
    reference_.layout = PlaneLayout(image.width, image.height);
    upload(image, roi);
    x_.assign(x.begin(), x.end());
    y_.assign(y.begin(), y.end());
    const auto second_row = std::ranges::find_if(y, [&](int other) { return other != y.front(); });
    reference_.grid_columns = static_cast<int>(second_row - y.begin());
    statuses_.resize(x.size());
    contrasts_.resize(x.size());
    matrices_.reserve(x.size() * kernels::matrix_floats(options_.order) * sizeof(float));
    prepare(x, y);
  }

  void set_current(ImageView image) override {
    const kernels::DeviceScope scope(device_);
    const PlaneLayout& layout = reference_.layout;
    coefficients_ =
        reserve<kernels::CoefficientPair>(coefficient_plane_, layout.elements()) + layout.origin();
    const ImageView uploaded = image_.upload(image, stream_);
    kernels::launch_spline_coefficients(uploaded, options_.interpolation, coefficients_, stream_.handle());
    saturated_current_.find(uploaded, stream_);
  }

  Status reference_status(std::int64_t i) const override { return statuses_[i]; }
  float reference_contrast(std::int64_t i) const override { return contrasts_[i]; }

  void refine(const Batch& batch, const std::stop_token& stop) override {
    const kernels::DeviceScope scope(device_);
    for (std::size_t first = 0; first < batch.points.size() && !stop.stop_requested(); first += most_tasks)
      refine_some(batch, first, std::min(most_tasks, batch.points.size() - first));
  }

  void refine_parts(const PartBatch& batch, const std::stop_token& stop) override {
    const kernels::DeviceScope scope(device_);
    constexpr std::size_t most_parts = std::size_t{1} << 16;
    for (std::size_t first = 0; first < batch.parts.size() && !stop.stop_requested(); first += most_parts)
      refine_some_parts(batch, first, std::min(most_parts, batch.parts.size() - first));
  }

  std::string kernel() const override { return "cuda-icgn"; }

 private:
  void upload(const ImageView& image, const ImageView& roi) {
    const PlaneLayout& layout = reference_.layout;
    auto* pixels = reserve<kernels::ReferencePixel>(reference_pixels_, layout.elements()) + layout.origin();
    auto* rest = reserve<std::uint32_t>(rest_, layout.elements()) + layout.origin();
    auto* range = reserve<kernels::GreyRange>(range_, 1);
    const ImageView uploaded = image_.upload(image, stream_);
    roi_on_device_ = roi.empty() ? ImageView{} : roi_.upload(roi, stream_);
    kernels::launch_reference_pixels(uploaded, roi_on_device_, options_.interpolation, {pixels, rest}, range,
                                     stream_.handle());
    saturated_reference_.find(uploaded, stream_);
    reference_.pixels = pixels;
    reference_.rest = rest;
    reference_.range = range;
  }

  void prepare(std::span<const int> x, std::span<const int> y) {
    DeviceBuffer centres;
    int* device_x = reserve<int>(centres, x.size() + y.size());
    int* device_y = device_x + x.size();
    kernels::upload(device_x, x.data(), x.size_bytes(), stream_);
    kernels::upload(device_y, y.data(), y.size_bytes(), stream_);
    auto* subsets = reserve<PreparedSubset>(subsets_, x.size());
    kernels::launch_prepare_subsets(reference_, options_,
                                    {device_x, device_y, static_cast<std::int64_t>(x.size())},
                                    {subsets, static_cast<float*>(matrices_.data())}, stream_.handle());
    std::vector<PreparedSubset> prepared(x.size());
    kernels::download(prepared.data(), subsets, prepared.size() * sizeof(PreparedSubset), stream_);
    stream_.synchronize("preparing subsets");
    std::ranges::transform(prepared, statuses_.begin(), &PreparedSubset::status);
    std::ranges::transform(prepared, contrasts_.begin(), [](const PreparedSubset& s) {
      return s.status == Status::ok ? icgn::residual_sd(0.5f, s.energy, s.count, s.fitted) : 0.0f;
    });
  }

  void refine_some(const Batch& batch, std::size_t first, std::size_t count) {
    tasks_.resize(count);
    for (std::size_t k = 0; k < count; ++k)
      tasks_[k] = task_of(batch.points[first + k], truncated(batch.starts[first + k], options_.order));
    run_tasks(options_, false, reference_,
              {static_cast<PreparedSubset*>(subsets_.data()), static_cast<float*>(matrices_.data())},
              batch.results.subspan(first, count));
  }

  void refine_some_parts(const PartBatch& batch, std::size_t first, std::size_t count) {
    std::vector<PreparedSubset> parts(count);
    kernels::PixelMasks masks(nullptr, options_.subset);
    std::vector<std::uint32_t> words(count * masks.words_of());
    tasks_.resize(count);
    for (std::size_t k = 0; k < count; ++k) {
      const SubsetPart& part = batch.parts[first + k];
      masks.write(part, words.data() + k * masks.words_of());
      parts[k].x = x_[part.point];
      parts[k].y = y_[part.point];
      parts[k].left = static_cast<std::int16_t>(part.left);
      parts[k].right = static_cast<std::int16_t>(part.right);
      parts[k].top = static_cast<std::int16_t>(part.top);
      parts[k].bottom = static_cast<std::int16_t>(part.bottom);
      parts[k].status = kernels::pending;
      tasks_[k] = task_of(static_cast<std::int64_t>(k), truncated(batch.starts[first + k], options_.order));
    }
    DeviceBuffer subsets, matrices, listed, hidden;
    auto* prepared = reserve<PreparedSubset>(subsets, count);
    auto* own = reserve<float>(matrices, count * kernels::matrix_floats(options_.order));
    auto* number = reserve<std::int32_t>(listed, 1);
    const auto n = static_cast<std::int32_t>(count);
    kernels::upload(prepared, parts.data(), count * sizeof(PreparedSubset), stream_);
    kernels::upload(number, &n, sizeof(n), stream_);
    auto* on_device = reserve<std::uint32_t>(hidden, words.size());
    kernels::upload(on_device, words.data(), words.size() * sizeof(std::uint32_t), stream_);
    masks.words = on_device;
    kernels::RefineReference reference = reference_;
    reference.masks = masks;
    kernels::launch_prepare_parts(reference, options_, n, number, {prepared, own}, stream_.handle());
    RefineOptions few = options_;
    few.max_iterations = batch.max_iterations;
    run_tasks(few, true, reference, {prepared, own}, batch.results.subspan(first, count));
  }

  /// Refines all of `tasks_`.
  void run_tasks(const RefineOptions& options, bool are_parts, const kernels::RefineReference& reference,
                 const kernels::PreparedSubsets& prepared, std::span<RefinedPoint> refined) {
    const std::size_t count = tasks_.size();
    results_.resize(count);
    auto* tasks = reserve<RefineTask>(device_tasks_, count);
    auto* results = reserve<RefineResult>(device_results_, count);
    kernels::upload(tasks, tasks_.data(), count * sizeof(RefineTask), stream_);
    kernels::launch_refine(
        {reference, coefficients_}, options, prepared,
        {.first = tasks, .max_count = static_cast<std::int64_t>(count), .are_parts = are_parts}, results,
        stream_);
    measure_without_saturated(options, are_parts,
                              {.reference = saturated_reference_.found(),
                               .current = saturated_current_.found(),
                               .roi = roi_on_device_,
                               .masks = {reference.masks.words, options.subset},
                               .subsets = prepared.subsets,
                               .tasks = tasks,
                               .results = results,
                               .count = static_cast<std::int64_t>(count)});
    kernels::download(results_.data(), results, count * sizeof(RefineResult), stream_);
    stream_.synchronize("refinement");
    for (std::size_t k = 0; k < count; ++k) refined[k] = point_of(tasks_[k], results_[k]);
  }

  /// Refines subsets with saturated pixels again without these.
  void measure_without_saturated(const RefineOptions& options, bool are_parts,
                                 const kernels::SaturatedFrame& frame) {
    const auto refine_parts = [&](const UnsaturatedParts& parts) {
      kernels::RefineReference without = reference_;
      without.masks = parts.masks;
      without.grid_columns = 0;
      const kernels::RefineTasks tasks{
          .first = parts.tasks.first, .max_count = parts.tasks.max_count, .are_parts = are_parts};
      kernels::launch_prepare_parts(without, options, tasks.max_count, parts.tasks.count_on_device,
                                    parts.prepared, stream_.handle());
      kernels::launch_refine({without, coefficients_}, options, parts.prepared, tasks, parts.results,
                             stream_);
    };
    saturated_refinement_.run(frame, nullptr, options.order, refine_parts, stream_);
  }

  RefineOptions options_;
  int device_;
  kernels::Stream stream_;
  kernels::RefineReference reference_;
  kernels::CoefficientPair* coefficients_ = nullptr;  ///< points to the pixel (0, 0)
  std::vector<int> x_, y_;                            ///< centres of the subsets
  std::vector<Status> statuses_;
  std::vector<float> contrasts_;
  std::vector<RefineTask> tasks_;
  std::vector<RefineResult> results_;
  DeviceImage image_, roi_;
  ImageView roi_on_device_;  ///< empty = everywhere
  SaturatedImage saturated_reference_, saturated_current_;
  SaturatedRefinement saturated_refinement_;
  DeviceBuffer reference_pixels_, rest_, range_, coefficient_plane_;
  DeviceBuffer subsets_, matrices_, device_tasks_, device_results_;
};

}  // namespace

std::unique_ptr<Backend> open_cuda(const RefineOptions& options, int ordinal) {
  const kernels::Device device = kernels::find_device(ordinal);
  const kernels::DeviceScope scope(device.index);
  return std::make_unique<CudaBackend>(options, device.index);
}

}  // namespace dic::refine

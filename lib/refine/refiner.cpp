#include <algorithm>
#include <dic/error.hpp>
#include <dic/refine.hpp>
#include <utility>

#include "core/device_name.hpp"
#include "core/parallel.hpp"
#include "refine/backend.hpp"

namespace dic {
namespace refine {

ShapeParameters truncated(ShapeParameters s, int order) {
  if (order < 2) s.uxx = s.uxy = s.uyy = s.vxx = s.vxy = s.vyy = 0;
  if (order < 1) s.ux = s.uy = s.vx = s.vy = 0;
  return s;
}

namespace {

std::unique_ptr<Backend> open(const RefineOptions& options, core::ThreadPool& pool,
                              const std::string& device) {
  const core::DeviceName name = core::parse_tracking_device(device);
  if (name.backend == "cpu") return open_cpu(options, pool);
  if (name.ordinals.size() != 1) throw UsageError("The refinement runs on one GPU: use cuda or cuda:N.");
  return open_cuda(options, name.ordinals.front());
}

void check_sizes(std::size_t points, std::size_t starts, std::size_t results) {
  if (starts != points || results != points)
    throw UsageError("Every point to be refined needs one start and one result.");
}
void check_point(std::int64_t point, std::int64_t points) {
  if (point < 0 || point >= points)
    throw UsageError("The reference has no point " + std::to_string(point) + ".");
}

}  // namespace
}  // namespace refine

struct Refiner::Impl {
  std::unique_ptr<core::ThreadPool> own_pool;  // null if the pool belongs to somebody else
  RefineOptions options;
  std::unique_ptr<refine::Backend> backend;
  int width = 0, height = 0;  // size of the reference
  std::int64_t points = 0;

  Impl(const RefineOptions& o, const std::string& device, std::unique_ptr<core::ThreadPool> own,
       core::ThreadPool& pool)
      : own_pool(std::move(own)), options(o) {
    const auto problems = options.validate();
    if (!problems.empty()) throw UsageError(problems.front());
    backend = refine::open(options, pool, device);
  }
};

Refiner::Refiner(const RefineOptions& options, const std::string& device, int threads) {
  auto pool = std::make_unique<core::ThreadPool>(threads);
  core::ThreadPool& shared = *pool;
  impl_ = std::make_unique<Impl>(options, device, std::move(pool), shared);
}
Refiner::Refiner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Refiner refine::open_refiner(const RefineOptions& options, const std::string& device,
                             core::ThreadPool& pool) {
  return Refiner(std::make_unique<Refiner::Impl>(options, device, nullptr, pool));
}
Refiner::~Refiner() = default;
Refiner::Refiner(Refiner&&) noexcept = default;
Refiner& Refiner::operator=(Refiner&&) noexcept = default;

void Refiner::set_reference(ImageView reference, std::span<const int> x, std::span<const int> y,
                            ImageView roi) {
  if (reference.empty()) throw UsageError("The reference image is empty.");
  if (x.size() != y.size()) throw UsageError("The points need as many x as y coordinates.");
  if (!roi.empty() && (roi.width != reference.width || roi.height != reference.height))
    throw UsageError("The ROI mask must have the size of the reference image.");
  impl_->backend->set_reference(reference, x, y, roi);
  impl_->width = reference.width;
  impl_->height = reference.height;
  impl_->points = static_cast<std::int64_t>(x.size());
}

void Refiner::set_current(ImageView current) {
  if (current.width != impl_->width || current.height != impl_->height)
    throw UsageError("The current image must have the size of the reference image.");
  impl_->backend->set_current(current);
}

Status Refiner::reference_status(std::int64_t i) const { return impl_->backend->reference_status(i); }
float Refiner::reference_contrast(std::int64_t i) const { return impl_->backend->reference_contrast(i); }

void Refiner::refine(std::span<const std::int64_t> points, std::span<const ShapeParameters> starts,
                     std::span<RefinedPoint> results, const std::stop_token& stop) const {
  refine::check_sizes(points.size(), starts.size(), results.size());
  for (const std::int64_t point : points) refine::check_point(point, impl_->points);
  impl_->backend->refine({points, starts, results}, stop);
}

void Refiner::refine_parts(std::span<const SubsetPart> parts, std::span<const ShapeParameters> starts,
                           std::span<RefinedPoint> results, int max_iterations,
                           const std::stop_token& stop) const {
  refine::check_sizes(parts.size(), starts.size(), results.size());
  const int radius = impl_->options.subset / 2;
  for (const SubsetPart& part : parts) {
    refine::check_point(part.point, impl_->points);
    if (std::min(part.left, part.top) < -radius || std::max(part.right, part.bottom) > radius)
      throw UsageError("A part of a subset must lie within it.");
  }
  impl_->backend->refine_parts({parts, starts, results, max_iterations}, stop);
}

RefinedPoint Refiner::refine(std::int64_t i, const ShapeParameters& start) const {
  RefinedPoint out;
  refine({&i, 1}, {&start, 1}, {&out, 1});
  return out;
}

const RefineOptions& Refiner::options() const { return impl_->options; }
std::string Refiner::kernel() const { return impl_->backend->kernel(); }

}  // namespace dic

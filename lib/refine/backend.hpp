#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace dic::core {
class ThreadPool;
}

/// The interface of the refinement's backends (CPU, CUDA). `Refiner` checks all arguments first.
namespace dic::refine {

/// Points to refine: points[k] starts from starts[k], and its result goes to results[k].
struct Batch {
  std::span<const std::int64_t> points;
  std::span<const ShapeParameters> starts;
  std::span<RefinedPoint> results;
};

/// Parts of subsets to refine: parts[k] starts from starts[k], and its result goes to results[k].
struct PartBatch {
  std::span<const SubsetPart> parts;
  std::span<const ShapeParameters> starts;
  std::span<RefinedPoint> results;
  int max_iterations;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Sets the reference image and the subset centres (x, y), which lie in it; roi is empty or has its size.
  virtual void set_reference(ImageView reference, std::span<const int> x, std::span<const int> y,
                             ImageView roi) = 0;
  /// Sets the current image, which has the size of the reference.
  virtual void set_current(ImageView current) = 0;
  virtual Status reference_status(std::int64_t i) const = 0;
  virtual float reference_contrast(std::int64_t i) const = 0;
  /// Refines a batch. If a stop is requested, some results are missing.
  virtual void refine(const Batch& batch, const std::stop_token& stop) = 0;
  virtual void refine_parts(const PartBatch& batch, const std::stop_token& stop) = 0;
  /// Name of the implementation, for run.json.
  virtual std::string kernel() const = 0;
};

/// pool: lives longer than the backend.
std::unique_ptr<Backend> open_cpu(const RefineOptions& options, core::ThreadPool& pool);
/// Opens a GPU. Builds without CUDA define it in cuda/backend_cuda_stub.cpp. Throws DeviceError.
std::unique_ptr<Backend> open_cuda(const RefineOptions& options, int ordinal);

/// Sets the terms that the order does not have to 0.
ShapeParameters truncated(ShapeParameters s, int order);

}  // namespace dic::refine

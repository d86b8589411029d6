#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

/// Interface of a backend (CPU, CUDA) of the refinement. `Refiner` checks all arguments before.
namespace dic::refine {

/// Points to be refined: points[k] from starts[k] into results[k].
struct Batch {
  std::span<const std::int64_t> points;
  std::span<const ShapeParameters> starts;
  std::span<RefinedPoint> results;
};

/// Parts of subsets to be refined: parts[k] from starts[k] into results[k].
struct PartBatch {
  std::span<const SubsetPart> parts;
  std::span<const ShapeParameters> starts;
  std::span<RefinedPoint> results;
  int max_iterations;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Centres (x, y) lie in the reference; roi is empty or has its size.
  virtual void set_reference(ImageView reference, std::span<const int> x, std::span<const int> y,
                             ImageView roi) = 0;
  /// Of the reference's size.
  virtual void set_current(ImageView current) = 0;
  virtual Status reference_status(std::int64_t i) const = 0;
  /// After a stop was requested, some results are missing.
  virtual void refine(const Batch& batch, const std::stop_token& stop) = 0;
  virtual void refine_parts(const PartBatch& batch, const std::stop_token& stop) = 0;
  /// Name of the implementation, for run.json.
  virtual std::string kernel() const = 0;
};

std::unique_ptr<Backend> open_cpu(const RefineOptions& options, int threads);
/// Defined in cuda/backend_cuda.cpp or, in builds without CUDA, in the stub beside it. Throws DeviceError.
std::unique_ptr<Backend> open_cuda(const RefineOptions& options, int ordinal);

/// Drops the terms that the order does not have.
ShapeParameters truncated(ShapeParameters s, int order);

}  // namespace dic::refine

#pragma once

#include <cstdint>
#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

/// What a backend (CPU, CUDA) of the refinement offers. `Refiner` checks what its caller gives and hands it
/// on.
namespace dic::refine {

/// Points to be refined: points[k] from starts[k] into results[k].
struct Batch {
  std::span<const std::int64_t> points;
  std::span<const ShapeParameters> starts;
  std::span<RefinedPoint> results;
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
  /// What runs, for run.json.
  virtual std::string kernel() const = 0;
};

std::unique_ptr<Backend> open_cpu(const RefineOptions& options, int threads);
/// Defined by exactly one file of cuda/, as the build has CUDA or not. Throws DeviceError.
std::unique_ptr<Backend> open_cuda(const RefineOptions& options, int ordinal);

/// Drops the terms that the order does not have.
ShapeParameters truncated(ShapeParameters s, int order);

}  // namespace dic::refine

#pragma once

#include <array>
#include <cstdint>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/shared/gradient_noise.hpp>    // GradientNoise
#include <dic/shared/refine_options.hpp>    // RefineOptions
#include <dic/shared/shape_parameters.hpp>  // ShapeParameters
#include <dic/shared/subset_part.hpp>       // SubsetPart
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace dic {

/// Result of one refined subset.
struct RefinedPoint {
  ShapeParameters shape;  ///< meaningful where status is ok
  Status status = Status::masked;
  float zncc = 0;
  float residual_sd = 0;   ///< standard deviation of reference minus matched current, grey levels
  float unit_sigma_u = 0;  ///< sigma_u for a noise of 1 grey level in both frames, px
  float unit_sigma_v = 0;
  float unit_covariance = 0;  ///< covariance of u and v for the same noise, px^2
  GradientNoise gradient_noise;
  std::int16_t iterations = 0;
};

/// @cond
class Refiner;
namespace core {
class ThreadPool;
}
namespace refine {
/// For the library itself: a refiner that uses the threads of its owner instead of some of its own.
Refiner open_refiner(const RefineOptions& options, const std::string& device, core::ThreadPool& pool);
}  // namespace refine
/// @endcond

/// Inverse-compositional Gauss-Newton refinement (Baker & Matthews 2004; Pan, Li & Tong 2013) of subsets of
/// one reference image, with the zero-normalized criterion and a prefiltered B-spline of the current
/// image (Unser, Aldroubi & Eden 1993). All reference-side work is done once, in `prepare`.
///
/// Images may have any ScalarType; reference and current must have the same size. One call at a time per
/// object; objects are independent of each other.
class Refiner {
 public:
  /// device: "cpu", "cuda" or "cuda:N". threads: CPU threads, 0 = one per core. Throws UsageError,
  /// DeviceError.
  DIC_API explicit Refiner(const RefineOptions& options, const std::string& device = "cpu", int threads = 0);
  DIC_API ~Refiner();
  DIC_API Refiner(Refiner&&) noexcept;
  DIC_API Refiner& operator=(Refiner&&) noexcept;

  /// Takes a new reference: computes the gradients of its spline, and means, norms and Hessians per point. x,
  /// y: subset centres, reference pixels. roi: u8, non-zero = inside, size of the reference, or empty. Throws
  /// UsageError (sizes), DeviceError.
  DIC_API void set_reference(ImageView reference, std::span<const int> x, std::span<const int> y,
                             ImageView roi = {});
  /// Takes a new current image and computes its B-spline coefficients. Throws UsageError if its size differs.
  DIC_API void set_current(ImageView current);

  /// Status of point i before any current image is seen: ok, flat, out_of_image or masked.
  DIC_API Status reference_status(std::int64_t i) const;
  /// Standard deviation of the grey values of point i's subset in the reference; 0 if its status is not ok.
  DIC_API float reference_contrast(std::int64_t i) const;
  /// Refines points[k] from starts[k] into results[k]; many points per call use a GPU better. Throws
  /// UsageError for unknown points or spans of different lengths. A point that cannot be refined gets a
  /// status. After `stop` was requested, results may be missing.
  DIC_API void refine(std::span<const std::int64_t> points, std::span<const ShapeParameters> starts,
                      std::span<RefinedPoint> results, const std::stop_token& stop = {}) const;
  /// Refines parts of subsets instead of whole ones, for subsets that hold more than one motion (subset
  /// splitting, Poissant & Barthelat 2010) or that leave the current image. max_iterations: see
  /// RefineOptions.
  DIC_API void refine_parts(std::span<const SubsetPart> parts, std::span<const ShapeParameters> starts,
                            std::span<RefinedPoint> results, int max_iterations,
                            const std::stop_token& stop = {}) const;
  /// Refines a single point.
  DIC_API RefinedPoint refine(std::int64_t i, const ShapeParameters& start) const;

  DIC_API const RefineOptions& options() const;
  /// Name of the kernel that runs, for reports: "cpu-icgn-AVX2" (the SIMD target of this machine),
  /// "cuda-icgn".
  DIC_API std::string kernel() const;

 private:
  struct Impl;
  friend Refiner refine::open_refiner(const RefineOptions& options, const std::string& device,
                                      core::ThreadPool& pool);
  explicit Refiner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Sub-pixel offset {x, y}, in [-1, 1] px, of the maximum of a quadratic surface fitted by least squares to a
/// 3x3 neighbourhood (row-major); {0, 0} if the surface has no maximum.
DIC_API std::array<double, 2> peak_offset(std::span<const float, 9> neighbourhood);

}  // namespace dic

#pragma once

#include <array>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace dic {

enum class Interpolation : std::uint8_t { cubic, quintic };
std::string_view to_string(Interpolation interpolation);

/// Options of the sub-pixel refinement.
struct RefineOptions {
  int subset = 33;  ///< px, odd, 7..255: larger is less noisy, smaller resolves finer fields
  int order = 1;    ///< of the shape function: 0 translation, 1 affine, 2 quadratic
  Interpolation interpolation = Interpolation::cubic;
  int max_iterations = 30;
  double tolerance = 1e-4;  ///< px: stop when no pixel of the subset moves further than this
  double min_zncc = 0.6;    ///< below this the point is low_correlation
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Shape parameters of one subset relative to its centre, dx and dy from -radius to radius:
///   u(dx, dy) = u + ux dx + uy dy + uxx dx^2/2 + uxy dx dy + uyy dy^2/2, v likewise.
struct ShapeParameters {
  double u = 0, ux = 0, uy = 0, uxx = 0, uxy = 0, uyy = 0;
  double v = 0, vx = 0, vy = 0, vxx = 0, vxy = 0, vyy = 0;

  constexpr double u_at(double dx, double dy) const {
    return u + ux * dx + uy * dy + 0.5 * uxx * dx * dx + uxy * dx * dy + 0.5 * uyy * dy * dy;
  }
  constexpr double v_at(double dx, double dy) const {
    return v + vx * dx + vy * dy + 0.5 * vxx * dx * dx + vxy * dx * dy + 0.5 * vyy * dy * dy;
  }
};

/// Result of one refined subset.
struct RefinedPoint {
  ShapeParameters shape;  ///< meaningful where status is ok
  Status status = Status::masked;
  float zncc = 0;
  float residual_sd = 0;   ///< standard deviation of reference minus matched current, grey levels
  float unit_sigma_u = 0;  ///< sigma_u for a noise of 1 grey level in both frames, px
  float unit_sigma_v = 0;
  std::int16_t iterations = 0;
};

/// Inverse-compositional Gauss-Newton refinement (Baker & Matthews 2004; Pan, Li & Tong 2013) of subsets of
/// one reference image, with the zero-normalized criterion and a prefiltered B-spline of the current
/// image (Unser, Aldroubi & Eden 1993). All reference-side work is done once, in `prepare`.
///
/// Images of any ScalarType; sizes of reference and current must agree. One call at a time per object;
/// objects are independent of each other.
class Refiner {
 public:
  /// device: "cpu", "cuda" or "cuda:N". threads: of the CPU; 0 = one per core. Throws UsageError,
  /// DeviceError.
  explicit Refiner(const RefineOptions& options, int threads = 0, const std::string& device = "cpu");
  ~Refiner();
  Refiner(Refiner&&) noexcept;
  Refiner& operator=(Refiner&&) noexcept;

  /// Takes a new reference: gradients of its spline, and per point means, norms, Hessians.
  /// x, y: subset centres, reference pixels. roi: u8, non-zero = inside, size of the reference, or empty.
  void set_reference(ImageView reference, std::span<const int> x, std::span<const int> y, ImageView roi = {});
  /// Takes a new current image: prefilters its B-spline coefficients.
  void set_current(ImageView current);

  /// Status of point i before any current image is seen: ok, flat, out_of_image or masked.
  Status reference_status(std::int64_t i) const;
  /// Refines points[k] from starts[k] into results[k]: the more at once, the better a GPU is used. Never
  /// throws for bad data: the status says what happened. After `stop` was requested, results may be missing.
  void refine(std::span<const std::int64_t> points, std::span<const ShapeParameters> starts,
              std::span<RefinedPoint> results, const std::stop_token& stop = {}) const;
  /// The same for one point.
  RefinedPoint refine(std::int64_t i, const ShapeParameters& start) const;

  const RefineOptions& options() const;
  /// What runs, for reports: "cpu-icgn-AVX2" (the SIMD target of this machine), "cuda-icgn".
  std::string kernel() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sub-pixel offset of the maximum of a quadratic surface through a 3x3 neighbourhood (row-major; least
/// squares, separable at its optimum): returns {x, y} in [-1, 1] px; {0, 0} where there is no maximum.
std::array<double, 2> peak_offset(std::span<const float, 9> neighbourhood);

}  // namespace dic

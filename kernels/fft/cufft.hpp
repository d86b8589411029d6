#pragma once

#include <dic/kernels/device.hpp>
#include <list>

/// Transforms by NVIDIA's cuFFT, which is loaded when it is first needed.
namespace dic::kernels {

/// Kind of transform; the values are cuFFT's own.
enum class FftKind : int { f32_forward = 0x2a, f32_inverse = 0x2c, f64_forward = 0x6a, f64_inverse = 0x6c };

/// `batch` transforms between real matrices of ny x nx and their spectra of ny x (nx / 2 + 1), in place: rows
/// of real numbers are 2 (nx / 2 + 1) apart.
struct FftShape {
  FftKind kind = FftKind::f32_forward;
  int ny = 0, nx = 0;
  int batch = 0;
  bool operator==(const FftShape&) const = default;
};

/// Plans that have been made, and their scratch memory.
class FftPlans {
 public:
  FftPlans() = default;
  ~FftPlans();
  FftPlans(const FftPlans&) = delete;
  FftPlans& operator=(const FftPlans&) = delete;

  /// Queues the transform of `data`; the plan is made at its first use. Throws DeviceError.
  void execute(const FftShape& shape, void* data, StreamHandle stream);

 private:
  struct Plan {
    FftShape shape;
    int handle = 0;
  };
  const Plan& plan_for(const FftShape& shape);
  void make_plan(const FftShape& shape);

  std::list<Plan> plans_;  ///< most recently used first
  DeviceBuffer work_area_;
};

}  // namespace dic::kernels

#include <algorithm>
#include <cmath>
#include <limits>

#include "correlate/backend.hpp"
#include "correlate/cpu/fft_plan.hpp"
#include "correlate/cpu/kernel.hpp"

namespace dic::correlate {
namespace {

// Multiply-adds of cpu-direct in the time of one complex butterfly operation of cpu-fft, measured on AVX-512
// and AVX2 processors. The rate depends on the type, but hardly on the processor. Near the break-even point
// cpu-direct is the safer choice, because cpu-fft computes scores of low contrast a second time.
double direct_rate(ScalarType type) {
  switch (type) {
    case ScalarType::u8:
      return 30;
    case ScalarType::u16:
      return 6;
    case ScalarType::i32:
    case ScalarType::f32:
    case ScalarType::f64:
      break;
  }
  return 2;
}

// Width padded to whole vectors of about `lanes` elements.
double padded(int width, ScalarType type) {
  const double lanes = type == ScalarType::u8 || type == ScalarType::u16 ? 32 : 8;
  return std::ceil(width / lanes) * lanes;
}

double direct_work(const CorrelateShape& shape) {
  return static_cast<double>(shape.shifts.count()) * shape.reference.height *
         padded(shape.reference.width, shape.type) / direct_rate(shape.type);
}

/// Relative cost of a transform: 1 for scores (float32), 3 for sums (float64).
double transform_cost(const CorrelateShape& shape) {
  return shape.criterion == Criterion::cross_correlation ? 3 : 1;
}

bool fft_supports(const CorrelateShape& shape) {
  return unsupported_reason(cpu_backend(), "cpu-fft", shape).empty();
}

}  // namespace

CorrelatePlan plan_cpu(const CorrelateShape& shape, const DeviceProperties&) {
  if (shape.pairs == 0 || shape.shifts.count() == 0) return {"cpu-direct", "there is nothing to compute"};
  if (!fft_supports(shape))
    return {"cpu-direct", "cpu-fft does not support this type or size"};
  if (transform_cost(shape) * fft_work(shape, choose_fft_size(shape)) < direct_work(shape))
    return {"cpu-fft", "so many shifts of so large a reference are cheaper through transforms"};
  return {"cpu-direct", "few enough shifts and elements to multiply them out"};
}

}  // namespace dic::correlate

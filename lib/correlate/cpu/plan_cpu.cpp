#include "correlate/cpu/kernel.hpp"
namespace dic::correlate {
CorrelatePlan plan_cpu(const CorrelateShape&, const DeviceFacts&) { return {"cpu-direct", "the only one"}; }
CpuVariant fft_variant() {
  auto v = naive_variant();
  v.info.name = "cpu-fft";
  return v;
}
}  // namespace dic::correlate

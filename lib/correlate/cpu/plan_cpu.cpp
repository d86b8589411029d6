#include "correlate/cpu/kernel.hpp"
namespace dic::correlate {
CorrelatePlan plan_cpu(const CorrelateShape&, const DeviceFacts&) { return {"cpu-naive", "the only one"}; }
CpuVariant direct_variant() {
  auto v = naive_variant();
  v.info.name = "cpu-direct";
  return v;
}
CpuVariant fft_variant() {
  auto v = naive_variant();
  v.info.name = "cpu-fft";
  return v;
}
}  // namespace dic::correlate

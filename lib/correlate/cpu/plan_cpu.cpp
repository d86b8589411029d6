#include "correlate/cpu/kernel.hpp"
namespace dic::correlate {
CorrelatePlan plan_cpu(const CorrelateShape&, const DeviceFacts&) { return {"cpu-direct", "the only one"}; }
}  // namespace dic::correlate

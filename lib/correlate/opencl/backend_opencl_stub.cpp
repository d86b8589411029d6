#include <dic/error.hpp>

#include "correlate/backend.hpp"

// Stands in for backend_opencl.cpp in builds without OpenCL.
namespace dic::correlate {
namespace {

constexpr const char* kMessage =
    "This dic was built without OpenCL: use --device cpu, or build it where CL/cl.h is installed with "
    "-DDIC_OPENCL=ON.";

const std::vector<CorrelateVariant>& no_variants() {
  static const std::vector<CorrelateVariant> none;
  return none;
}
std::string unsupported_reason(std::string_view, const CorrelateShape&) { return kMessage; }
CorrelatePlan plan(const CorrelateShape&, const DeviceProperties&) { throw DeviceError(kMessage); }
std::unique_ptr<Backend> open(std::span<const int>, int) { throw DeviceError(kMessage); }

}  // namespace

BackendEntry opencl_backend() { return {"opencl", no_variants, unsupported_reason, plan, open}; }

}  // namespace dic::correlate

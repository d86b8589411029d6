#include "correlate/backend_stub.hpp"

// Stands in for backend_opencl.cpp in builds without OpenCL.
namespace dic::correlate {
namespace {

constexpr char kMessage[] =
    "This dic was built without OpenCL: use --device cpu, or build it where CL/cl.h is installed with "
    "-DDIC_OPENCL=ON.";

}  // namespace

BackendEntry opencl_backend() { return missing_backend<kMessage>("opencl"); }

}  // namespace dic::correlate

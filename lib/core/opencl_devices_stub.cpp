#include <dic/info.hpp>

// Stands in for opencl_devices.cpp in builds without OpenCL.
namespace dic {

OpenClInfo opencl_info() { return {.note = "This dic was built without OpenCL.", .devices = {}}; }

}  // namespace dic

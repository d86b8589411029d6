#include <dic/info.hpp>

#include "core/opencl_library.hpp"

namespace dic {
namespace {

std::string describe_device(cl_device_id device) {
  const auto units = core::cl::property<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  const auto bytes = core::cl::property<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  return core::cl::text_property(device, CL_DEVICE_VERSION) + ", " + std::to_string(units) +
         " compute units, " + std::to_string(bytes >> 20) + " MiB" +
         (core::cl::has_float64(device) ? "" : ", no float64");
}

}  // namespace

OpenClInfo opencl_info() {
  OpenClInfo info;
  for (const cl_device_id device : core::cl::devices(info.note))
    info.devices.push_back({"opencl:" + std::to_string(info.devices.size()),
                            core::cl::text_property(device, CL_DEVICE_NAME), describe_device(device)});
  return info;
}

}  // namespace dic

#include "core/opencl_library.hpp"

#include <algorithm>
#include <dic/error.hpp>

#include "core/loaded_library.hpp"

namespace dic::core::cl {
namespace {

struct StatusName {
  cl_int status;
  const char* name;
};
#define DIC_STATUS(name) \
  { name, #name }
/// Errors that can happen in a correct program; messages show other statuses by their number.
constexpr StatusName kStatusNames[] = {
    DIC_STATUS(CL_DEVICE_NOT_AVAILABLE),
    DIC_STATUS(CL_COMPILER_NOT_AVAILABLE),
    DIC_STATUS(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    DIC_STATUS(CL_OUT_OF_RESOURCES),
    DIC_STATUS(CL_OUT_OF_HOST_MEMORY),
    DIC_STATUS(CL_BUILD_PROGRAM_FAILURE),
    DIC_STATUS(CL_INVALID_BUFFER_SIZE),
    DIC_STATUS(CL_INVALID_WORK_GROUP_SIZE),
};
#undef DIC_STATUS

std::string describe_status(cl_int status) {
  const std::string number = std::to_string(status);
  const auto* known = std::ranges::find(kStatusNames, status, &StatusName::status);
  return known == std::end(kStatusNames) ? "error " + number : std::string(known->name) + ", " + number;
}

Library load() {
  Library found;
  LoadedLibrary file("libOpenCL.so.1");
#define DIC_OPENCL_FIND(name) file.find(#name, found.name);
  DIC_OPENCL_FUNCTIONS(DIC_OPENCL_FIND)
#undef DIC_OPENCL_FIND
  found.problem = file.problem(
      "OpenCL", "install its loader (Debian: ocl-icd-libopencl1) and the driver of the device", "update it");
  return found;
}

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  if (library().clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};  // the loader finds no driver
  std::vector<cl_platform_id> found(count);
  if (count > 0) check(library().clGetPlatformIDs(count, found.data(), nullptr), "listing platforms");
  return found;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  if (library().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> found(count);
  check(library().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, found.data(), nullptr),
        "listing devices");
  std::erase_if(found, [](cl_device_id device) {
    return !property<cl_bool>(device, CL_DEVICE_AVAILABLE) ||
           !property<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE);
  });
  return found;
}

}  // namespace

const Library& library() {
  static const Library functions = load();
  return functions;
}

void check(cl_int status, std::string_view what) {
  if (status == CL_SUCCESS) return;
  throw DeviceError("OpenCL failed in " + std::string(what) + " (" + describe_status(status) +
                    "); use --device cpu if this persists.");
}

std::vector<cl_device_id> devices(std::string& why) {
  why = library().problem;
  if (!why.empty()) return {};
  std::vector<cl_device_id> all;
  for (const cl_platform_id platform : platforms())
    for (const cl_device_id device : devices_of(platform)) all.push_back(device);
  if (all.empty())
    why = "OpenCL knows no device: install the driver of the device (for processors: pocl-opencl-icd).";
  return all;
}

std::string text_property(cl_device_id device, cl_device_info name) {
  std::size_t bytes = 0;
  check(library().clGetDeviceInfo(device, name, 0, nullptr, &bytes), "asking a device");
  std::string text(bytes, '\0');
  check(library().clGetDeviceInfo(device, name, bytes, text.data(), nullptr), "asking a device");
  return text.c_str();  // drops the terminating zero
}

bool has_float64(cl_device_id device) {
  return property<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
}

}  // namespace dic::core::cl

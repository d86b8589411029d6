#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// OpenCL 1.2 through libOpenCL.so.1, which is loaded on first use, so that one program serves machines with
/// and without it. The build needs only the headers.
namespace dic::core::cl {

#define DIC_OPENCL_FUNCTIONS(use)                                                                           \
  use(clGetPlatformIDs) use(clGetDeviceIDs) use(clGetDeviceInfo) use(clCreateContext) use(clReleaseContext) \
      use(clCreateCommandQueue) use(clReleaseCommandQueue) use(clCreateBuffer) use(clReleaseMemObject)      \
          use(clEnqueueWriteBuffer) use(clEnqueueReadBuffer) use(clCreateProgramWithSource)                 \
              use(clBuildProgram) use(clGetProgramBuildInfo) use(clReleaseProgram) use(clCreateKernel)      \
                  use(clReleaseKernel) use(clSetKernelArg) use(clEnqueueNDRangeKernel) use(clWaitForEvents) \
                      use(clGetEventProfilingInfo) use(clReleaseEvent)

/// The OpenCL functions that this library uses.
struct Library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define DIC_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  DIC_OPENCL_FUNCTIONS(DIC_OPENCL_MEMBER)
#undef DIC_OPENCL_MEMBER
  std::string problem;  ///< empty if all functions were found, otherwise one sentence
};
const Library& library();

/// Throws DeviceError for any status except CL_SUCCESS. what: the operation, such as "copying an image".
void check(cl_int status, std::string_view what);

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* handle) const {
    (library().*release)(handle);
  }
};
/// An OpenCL object with the function that releases it.
template <typename Handle, auto release>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Release<release>>;
using Context = Owned<cl_context, &Library::clReleaseContext>;
using Queue = Owned<cl_command_queue, &Library::clReleaseCommandQueue>;
using Memory = Owned<cl_mem, &Library::clReleaseMemObject>;
using Program = Owned<cl_program, &Library::clReleaseProgram>;
using Kernel = Owned<cl_kernel, &Library::clReleaseKernel>;
using Event = Owned<cl_event, &Library::clReleaseEvent>;

/// The devices of all platforms that can compile kernels: opencl:0, opencl:1, ... If there are none, `why`
/// receives one sentence that says why.
std::vector<cl_device_id> devices(std::string& why);

template <typename T>
T property(cl_device_id device, cl_device_info name) {
  T value{};
  check(library().clGetDeviceInfo(device, name, sizeof value, &value, nullptr), "asking a device");
  return value;
}
std::string text_property(cl_device_id device, cl_device_info name);
bool has_float64(cl_device_id device);

}  // namespace dic::core::cl

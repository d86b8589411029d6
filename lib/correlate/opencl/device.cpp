#include "correlate/opencl/device.hpp"

#include <algorithm>
#include <dic/error.hpp>

namespace dic::correlate::opencl {
namespace {

using core::cl::check;
using core::cl::library;

cl_device_id device_numbered(int number) {
  std::string why;
  const auto all = core::cl::devices(why);
  if (all.empty()) throw DeviceError(why);
  if (number >= static_cast<int>(all.size()))
    throw DeviceError("There is no device opencl:" + std::to_string(number) + ": `dic info` lists " +
                      std::to_string(all.size()) + ".");
  return all[number];
}

Limits limits_of(cl_device_id device) {
  return {.float64 = core::cl::has_float64(device),
          .largest_buffer = core::cl::property<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
          .local_bytes = core::cl::property<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE),
          .work_group = core::cl::property<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE)};
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  const auto ask = [&](std::size_t room, char* to) {
    check(library().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, room, to, &bytes),
          "reading the log of its compiler");
  };
  ask(0, nullptr);
  std::string log(bytes, '\0');
  ask(bytes, log.data());
  return log.c_str();  // drops the terminating zero
}

}  // namespace

Device::Device(int number) : device_(device_numbered(number)), limits_(limits_of(device_)) {
  cl_int status = CL_SUCCESS;
  context_.reset(library().clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status));
  check(status, "opening the device");
  queue_.reset(library().clCreateCommandQueue(context_.get(), device_, CL_QUEUE_PROFILING_ENABLE, &status));
  check(status, "opening a queue");
}

void Device::reserve(Buffer& buffer, std::size_t bytes) const {
  if (buffer.memory && bytes <= buffer.bytes) return;
  buffer = {};  // freed first, because the old and the new memory may not fit together
  cl_int status = CL_SUCCESS;
  bytes = std::max<std::size_t>(bytes, 1);
  buffer.memory.reset(library().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &status));
  check(status, "allocating memory");
  buffer.bytes = bytes;
}

double Device::write(const Buffer& to, std::size_t offset, std::span<const std::byte> from) const {
  if (from.empty()) return 0;
  cl_event event = nullptr;
  check(library().clEnqueueWriteBuffer(queue_.get(), to.memory.get(), CL_TRUE, offset, from.size(),
                                       from.data(), 0, nullptr, &event),
        "a copy to the device");
  return seconds_of(event, "a copy to the device");
}

double Device::read(std::span<std::byte> to, const Buffer& from) const {
  cl_event event = nullptr;
  check(library().clEnqueueReadBuffer(queue_.get(), from.memory.get(), CL_TRUE, 0, to.size(), to.data(), 0,
                                      nullptr, &event),
        "a copy from the device");
  return seconds_of(event, "a copy from the device");
}

double Device::run(cl_kernel kernel, const Range& range) const {
  cl_event event = nullptr;
  check(library().clEnqueueNDRangeKernel(queue_.get(), kernel, 3, nullptr, range.global.data(),
                                         range.local.data(), 0, nullptr, &event),
        "starting a kernel");
  return seconds_of(event, "a kernel");
}

/// Waits for the event, releases it, and returns the seconds between its start and its end.
double Device::seconds_of(cl_event taken, std::string_view what) const {
  const core::cl::Event event(taken);
  check(library().clWaitForEvents(1, &taken), what);
  cl_ulong begin = 0, end = 0;
  check(library().clGetEventProfilingInfo(taken, CL_PROFILING_COMMAND_START, sizeof begin, &begin, nullptr),
        "timing");
  check(library().clGetEventProfilingInfo(taken, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr),
        "timing");
  return 1e-9 * static_cast<double>(end - begin);
}

core::cl::Kernel Device::compile(std::span<const std::string_view> sources,
                                 const std::string& options) const {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view source : sources) {
    texts.push_back(source.data());
    lengths.push_back(source.size());
  }
  cl_int status = CL_SUCCESS;
  const core::cl::Program program(library().clCreateProgramWithSource(
      context_.get(), static_cast<cl_uint>(texts.size()), texts.data(), lengths.data(), &status));
  check(status, "reading the kernels");
  status = library().clBuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
  if (status == CL_BUILD_PROGRAM_FAILURE)
    throw DeviceError("OpenCL's compiler refuses the kernels of dic; use --device cpu. It says:\n" +
                      build_log(program.get(), device_));
  check(status, "compiling the kernels");
  core::cl::Kernel kernel(library().clCreateKernel(program.get(), "correlate", &status));
  check(status, "loading a kernel");
  return kernel;
}

}  // namespace dic::correlate::opencl

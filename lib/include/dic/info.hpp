#pragma once

#include <dic/export.hpp>
#include <string>
#include <vector>

namespace dic {

/// Version of the library, for example "0.1.0".
DIC_API std::string version();

struct DeviceInfo {
  std::string name;     ///< for example "cuda:0", "opencl:0"
  std::string model;    ///< for example "NVIDIA H100 80GB HBM3"
  std::string details;  ///< compute capability, memory
};
struct BuildInfo {
  std::string version, compiler, build_type;
  std::vector<std::string> libraries;  ///< for example "OpenCV 4.6.0"
  bool cuda = false;
  std::string cuda_note;            ///< why no GPU can be used; empty if one can
  std::vector<DeviceInfo> devices;  ///< the GPUs that CUDA can use
  std::string cpu;                  ///< model and core count
  std::string simd_target;          ///< SIMD instructions that will be used
};
/// Versions, build options and the hardware of this machine.
DIC_API BuildInfo build_info();

struct OpenClInfo {
  std::string note;  ///< why no device can be used; empty if one can
  std::vector<DeviceInfo> devices;
};
/// The OpenCL devices. Unlike `build_info`, loads the OpenCL drivers.
DIC_API OpenClInfo opencl_info();

}  // namespace dic

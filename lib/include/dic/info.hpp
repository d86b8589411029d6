#pragma once

#include <string>
#include <vector>

namespace dic {

/// "0.1.0".
std::string version();

struct DeviceInfo {
  std::string name;     ///< "cuda:0", "opencl:0"
  std::string model;    ///< "NVIDIA H100 80GB HBM3"
  std::string details;  ///< compute capability, memory
};
struct BuildInfo {
  std::string version, compiler, build_type;
  std::vector<std::string> libraries;  ///< "OpenCV 4.6.0", ...
  bool cuda = false;
  std::string cuda_note;            ///< why there is no GPU to use; empty where there is one
  std::vector<DeviceInfo> devices;  ///< the GPUs that CUDA can use
  std::string cpu;                  ///< model and core count
  std::string simd_target;          ///< SIMD instructions that will be used
};
/// Versions, build options and what this machine offers.
BuildInfo build_info();

struct OpenClInfo {
  std::string note;  ///< why there is no device to use; empty where there is one
  std::vector<DeviceInfo> devices;
};
/// The devices of OpenCL. Loads its drivers, which `build_info` does not.
OpenClInfo opencl_info();

}  // namespace dic

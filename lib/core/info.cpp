#include <dic/info.hpp>

#include "core/simd_targets.hpp"
// Highway reads the list of targets from simd_targets.hpp, which is included above.
#include <hwy/highway.h>

#include <core/build_settings.hpp>
#include <dic/version.hpp>
#include <fstream>
#include <thread>

#include "core/cuda_devices.hpp"

namespace dic {

namespace {

// Model name of the processor. Only x86 has a "model name : ..." line in /proc/cpuinfo.
std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

// Highway numbers its targets so that the best one has the lowest bit.
std::string best_simd_target() {
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);
}

}  // namespace

std::string version() { return DIC_VERSION; }

BuildInfo build_info() {
  BuildInfo info;
  info.version = version();
  info.compiler = DIC_COMPILER;
  info.build_type = DIC_BUILD_TYPE;
  info.libraries = {"OpenCV " DIC_OPENCV_VERSION, "HDF5 " DIC_HDF5_VERSION, "Eigen " DIC_EIGEN_VERSION,
                    "Highway " DIC_HIGHWAY_VERSION};
  info.cuda = DIC_WITH_CUDA;
  info.devices = core::cuda_devices(info.cuda_note);
  info.cpu = cpu_model() + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads";
  info.simd_target = best_simd_target();
  return info;
}

}  // namespace dic

#pragma once

#include <span>
#include <string_view>

namespace dic::correlate::opencl {

/// A file of kernels/, embedded in libdic.
struct KernelSource {
  std::string_view name;  ///< "basic.cl"
  std::string_view text;
};

/// All kernel sources; generated at build time (cmake/EmbedFiles.cmake).
std::span<const KernelSource> kernel_sources();

}  // namespace dic::correlate::opencl

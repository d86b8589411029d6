/// Input: a camera file, as dic calibrate writes it.
#include <cmath>
#include <dic/camera.hpp>
#include <dic/error.hpp>

#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  try {
    const dic::Camera camera = dic::read_camera(file.path());
    const dic::Size image = camera.parameters().image;
    for (const double x : {0.0, 0.3, 1.0})
      for (const double y : {0.0, 0.7, 1.0}) {
        const auto corrected = camera.undistort(x * (image.width - 1), y * (image.height - 1));
        dic::require(!std::isnan(corrected.x) && !std::isnan(corrected.y));
      }
  } catch (const dic::FileError&) {
  }
  return 0;
}

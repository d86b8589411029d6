/// Input: a stereo file, or the calibration of another program.
#include <cmath>
#include <dic/camera_rig.hpp>
#include <dic/error.hpp>

#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  try {
    const dic::CameraRig rig = dic::read_camera_rig(file.path(), {64, 48});
    dic::require(rig.validate().empty());
    const std::string text = dic::camera_rig_json(rig);
    dic::require(!text.empty());
  } catch (const dic::FileError&) {
  }
  return 0;
}

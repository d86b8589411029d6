#pragma once

#include <memory>
#include <string>

#include "live/camera.hpp"

namespace dic::live {

/// Opens a webcam by OpenCV. name: its number, as "0", or the file of a device or a video. Throws as
/// open_camera().
std::unique_ptr<LiveCamera> open_webcam(const std::string& name, const CameraSettings& settings);
/// Adds the webcams that the system knows.
void list_webcams(CameraList& list);

}  // namespace dic::live

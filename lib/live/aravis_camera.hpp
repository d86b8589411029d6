#pragma once

#include <memory>
#include <string>

#include "live/camera.hpp"

namespace dic::live {

/// Opens a GenICam camera by Aravis. Throws as open_camera().
std::unique_ptr<LiveCamera> open_aravis_camera(const std::string& name, const CameraSettings& settings);
/// Adds the GenICam cameras that Aravis finds.
void list_aravis_cameras(CameraList& list);

}  // namespace dic::live

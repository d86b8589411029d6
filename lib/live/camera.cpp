#include "live/camera.hpp"

#include <string_view>

#include "live/aravis_camera.hpp"
#include "live/webcam.hpp"

namespace dic {

CameraList list_cameras() {
  CameraList list;
  live::list_aravis_cameras(list);
  live::list_webcams(list);
  return list;
}

LiveDrops LiveDrops::operator-(const LiveDrops& other) const {
  return {camera - other.camera, network - other.network, no_buffer - other.no_buffer,
          measuring - other.measuring, recorder - other.recorder};
}

namespace live {

std::unique_ptr<LiveCamera> open_camera(const std::string& name, const CameraSettings& settings) {
  constexpr std::string_view kWebcam = "webcam:";
  if (name.starts_with(kWebcam)) return open_webcam(name.substr(kWebcam.size()), settings);
  return open_aravis_camera(name, settings);
}

}  // namespace live
}  // namespace dic

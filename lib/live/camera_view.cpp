#include <dic/live.hpp>

#include "live/camera.hpp"

namespace dic {

CameraView::CameraView(const std::string& camera, const CameraSettings& settings)
    : camera_(live::open_camera(camera, settings)), asks_for_frames_(settings.trigger == "software") {
  camera_->start();
}

CameraView::~CameraView() { camera_->stop(); }

std::shared_ptr<const Image> CameraView::next(std::chrono::milliseconds longest) {
  if (asks_for_frames_) camera_->trigger();
  const auto frame = camera_->next(longest);
  return frame ? frame->image : nullptr;
}

std::vector<CameraSetting> CameraView::settings() const { return camera_->settings(); }

}  // namespace dic

#include <algorithm>
#include <cmath>
#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>

#include "image/opencv/quiet.hpp"
#include "image/opencv/video_decoder.hpp"

namespace dic::image {
namespace {

class OpenCvDecoder : public VideoDecoder {
 public:
  /// Opens a file with the backends that read videos. OpenCV by default also asks its camera drivers, which
  /// search the machine's buses (and leak).
  bool open(const std::filesystem::path& path) {
    const QuietCerr quiet;
    const auto backends = cv::videoio_registry::getStreamBackends();
    const bool opened = std::any_of(backends.begin(), backends.end(), [&](cv::VideoCaptureAPIs backend) {
      const bool reads_videos = backend != cv::CAP_IMAGES && backend != cv::CAP_GPHOTO2;
      return reads_videos && video_.open(path.string(), backend);
    });
    if (!opened) return false;
    if (const double frames = video_.get(cv::CAP_PROP_FRAME_COUNT); std::isfinite(frames) && frames >= 1)
      count = std::llround(frames);
    if (const double fps = video_.get(cv::CAP_PROP_FPS); std::isfinite(fps) && fps > 0)
      frames_per_second = fps;
    video_.set(cv::CAP_PROP_ORIENTATION_AUTO, 0);  // version 4.6 turns by 180 degrees too much
    return true;
  }

  bool advance() override {
    const QuietCerr quiet;
    return video_.grab();
  }

  bool retrieve(cv::Mat& frame) override {
    const QuietCerr quiet;
    return video_.retrieve(frame) && !frame.empty();
  }

  std::optional<double> time() const override {
    const QuietCerr quiet;
    const double milliseconds = video_.get(cv::CAP_PROP_POS_MSEC);
    // Backends without time stamps return 0 for every frame.
    if (!std::isfinite(milliseconds) || milliseconds < 0) return {};
    return milliseconds / 1000;
  }

 private:
  cv::VideoCapture video_;
};

}  // namespace

std::unique_ptr<VideoDecoder> decode_video_with_opencv(const std::filesystem::path& path) {
  auto decoder = std::make_unique<OpenCvDecoder>();
  if (!decoder->open(path)) return nullptr;
  return decoder;
}

}  // namespace dic::image

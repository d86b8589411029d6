#include <algorithm>
#include <opencv2/videoio.hpp>

#include "image/opencv/codecs.hpp"
#include "image/opencv/quiet.hpp"
#include "image/webcam.hpp"

namespace dic::image {
namespace {

int number_of(Webcam::Property property) {
  switch (property) {
    case Webcam::Property::width:
      return cv::CAP_PROP_FRAME_WIDTH;
    case Webcam::Property::height:
      return cv::CAP_PROP_FRAME_HEIGHT;
    case Webcam::Property::frame_rate:
      return cv::CAP_PROP_FPS;
    case Webcam::Property::exposure:
      return cv::CAP_PROP_EXPOSURE;
    case Webcam::Property::gain:
      break;
  }
  return cv::CAP_PROP_GAIN;
}

class OpenCvWebcam final : public Webcam {
 public:
  bool open(const std::string& name) {
    const QuietCerr quiet;
    const bool is_number =
        !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    return is_number && name.size() < 6 ? camera_.open(std::stoi(name)) : camera_.open(name);
  }

  std::optional<Image> next() override {
    const QuietCerr quiet;
    cv::Mat frame;
    if (!camera_.read(frame) || frame.empty()) return {};
    return grey_from_bgr(frame);
  }
  void set(Property property, double value) override {
    const QuietCerr quiet;
    camera_.set(number_of(property), value);
  }
  double get(Property property) const override {
    const QuietCerr quiet;
    return camera_.get(number_of(property));
  }

 private:
  cv::VideoCapture camera_;
};

}  // namespace

std::unique_ptr<Webcam> open_webcam_with_opencv(const std::string& name) {
  auto camera = std::make_unique<OpenCvWebcam>();
  if (!camera->open(name)) return nullptr;
  return camera;
}

}  // namespace dic::image

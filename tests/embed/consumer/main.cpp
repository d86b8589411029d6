// Lab software with its camera images in memory: a stream of frames that move by up to (1.5, -0.75) px,
// checked; and an image that is kept in a format of OpenCV's, whose codecs libdic loads from its own folder.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track_stream.hpp>
#include <exception>
#include <filesystem>
#include <vector>

namespace {

constexpr int kSize = 160;
constexpr double kMovedX = 1.5, kMovedY = -0.75;

// Waves of many directions and lengths: as good as speckle, and exact between pixels.
double pattern(double x, double y) {
  double sum = 0;
  for (int k = 1; k <= 24; ++k) {
    const double angle = 2.4 * k, frequency = 0.35 + 0.03 * k;
    sum += std::sin(frequency * (std::cos(angle) * x + std::sin(angle) * y) + 1.7 * k * k);
  }
  return 127 + 18 * sum;
}

std::vector<std::uint8_t> camera(double moved_x, double moved_y) {
  std::vector<std::uint8_t> pixels(kSize * kSize);
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x)
      pixels[y * kSize + x] = static_cast<std::uint8_t>(
          std::lround(std::fmin(255, std::fmax(0, pattern(x - moved_x, y - moved_y)))));
  return pixels;
}

dic::ImageView view(const std::vector<std::uint8_t>& pixels) {
  return dic::ImageView::of(pixels, {kSize, kSize});
}

// The largest error of a frame, px; infinite where too few points were measured.
double error_of(const dic::FrameResult& result, double part) {
  int measured = 0;
  double worst = 0;
  for (std::size_t i = 0; i < result.field.status.size(); ++i) {
    if (result.field.status[i] != dic::Status::ok) continue;
    ++measured;
    worst = std::fmax(worst, std::abs(result.field.u[i] - part * kMovedX));
    worst = std::fmax(worst, std::abs(result.field.v[i] - part * kMovedY));
  }
  std::printf("frame %d: %d points measured, largest error %.4f px\n", static_cast<int>(result.index),
              measured, worst);
  return measured > 100 ? worst : INFINITY;
}

bool is_kept(const char* file) {
  const auto pixels = camera(0, 0);
  dic::write_image(file, view(pixels));
  const dic::Image read = dic::read_image(file);
  std::filesystem::remove(file);
  return read.width() == kSize && std::memcmp(read.row<std::uint8_t>(0), pixels.data(), pixels.size()) == 0;
}

// Whether an exception of libdic is caught as what it is.
bool catches_errors() {
  try {
    dic::read_image("missing.bmp");
  } catch (const dic::FileError&) {
    return true;
  } catch (const std::exception&) {
  }
  return false;
}

}  // namespace

int main() {
  dic::TrackOptions options;
  options.refine.subset = 31;
  options.step = 10;
  constexpr int kFrames = 3;
  double worst = 0;
  int results = 0;
  dic::TrackStream stream(options, view(camera(0, 0)), {}, [&](const dic::FrameResult& result) {
    worst = std::fmax(worst, error_of(result, (result.index + 1.0) / kFrames));
    ++results;
  });
  for (int k = 1; k <= kFrames; ++k) stream.push(view(camera(kMovedX * k / kFrames, kMovedY * k / kFrames)));
  stream.finish();
  return results == kFrames && worst < 0.02 && is_kept("camera.bmp") && catches_errors() ? 0 : 1;
}

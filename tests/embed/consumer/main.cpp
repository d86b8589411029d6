// Lab software with its camera pictures in memory: tracks a pair that moved by (1.5, -0.75) px and checks it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <dic/track.hpp>
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
  return {pixels.data(), dic::ScalarType::u8, kSize, kSize, kSize};
}

}  // namespace

int main() {
  const auto reference = camera(0, 0), current = camera(kMovedX, kMovedY);
  dic::TrackOptions options;
  options.refine.subset = 31;
  options.step = 10;
  dic::Tracker tracker(options, view(reference));
  const dic::Field field = tracker.track(view(current));

  int measured = 0;
  double worst = 0;
  for (std::size_t i = 0; i < field.status.size(); ++i) {
    if (field.status[i] != dic::Status::ok) continue;
    ++measured;
    worst = std::fmax(worst, std::fmax(std::abs(field.u[i] - kMovedX), std::abs(field.v[i] - kMovedY)));
  }
  std::printf("%d points measured, largest error %.4f px\n", measured, worst);
  return measured > 100 && worst < 0.02 ? 0 : 1;
}

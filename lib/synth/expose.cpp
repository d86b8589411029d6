#include "synth/expose.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "synth/random.hpp"

namespace dic::synth {
namespace {

/// Light at x as a share of the light at the right edge.
double light_at(const SynthOptions& o, double x) {
  return o.light_min + (1 - o.light_min) * x / (o.size.width - 1);
}

template <typename T>
void expose_as(const SynthOptions& options, const std::vector<double>& pattern, int i, std::uint64_t key,
               core::ThreadPool& pool, Image& image) {
  const auto last = static_cast<double>(std::max<std::size_t>(1, options.amounts.size() - 1));
  const double gain = 1 + (options.gain - 1) * i / last, offset = options.offset * i / last;
  const double noise = i == 0 ? options.reference_noise.value_or(options.noise) : options.noise;
  const double white = std::numeric_limits<T>::max(), level = white / 255;
  const double electrons = options.full_well / 255;  // electrons per grey level
  core::for_each_row(pool, image.height(), [&](int y) {
    T* row = image.row<T>(y);
    for (int x = 0; x < image.width(); ++x) {
      const std::int64_t pixel = static_cast<std::int64_t>(y) * image.width() + x;
      double grey = pattern[pixel] * light_at(options, x) * gain + offset + glare_at(options, x, y);
      if (electrons > 0)
        grey = poisson(mix(key), static_cast<std::uint64_t>(pixel), grey * electrons) / electrons;
      if (noise > 0) grey += noise * normal_pair(key, static_cast<std::uint64_t>(pixel)).first;
      row[x] = static_cast<T>(std::lround(std::clamp(grey * level, 0.0, white)));
    }
  });
}

}  // namespace

double glare_at(const SynthOptions& o, double x, double y) {
  if (o.glare == 0) return 0;
  // The glare is 4 * 255 in the middle, and 128 at the edge of the saturated share, enough to saturate a
  // middle grey.
  const double area = o.glare * o.size.width * o.size.height;
  const double variance = area / (std::numbers::pi * 2 * std::log(4 * 255 / 128.0));
  const double dx = x - (o.size.width - 1) / 2.0, dy = y - (o.size.height - 1) / 2.0;
  return 4 * 255 * std::exp(-(dx * dx + dy * dy) / (2 * variance));
}

Image expose(const SynthOptions& options, const std::vector<double>& pattern, int i, std::uint64_t key,
             core::ThreadPool& pool) {
  Image image(options.size, options.bits == 8 ? ScalarType::u8 : ScalarType::u16);
  if (options.bits == 8)
    expose_as<std::uint8_t>(options, pattern, i, key, pool, image);
  else
    expose_as<std::uint16_t>(options, pattern, i, key, pool, image);
  return image;
}

}  // namespace dic::synth

#include "synth/expose.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "synth/random.hpp"

namespace dic::synth {
namespace {

/// Light at x as a share of the light at the right edge.
double light_at(const SynthOptions& o, double x) {
  return o.light_min + (1 - o.light_min) * x / (o.size.width - 1);
}

/// Noise of standard deviation 1 at a pixel.
double noise_at(const SynthOptions& o, std::uint64_t key, int x, int y) {
  const auto white = [&](int i, int j) {
    const std::int64_t pixel = static_cast<std::int64_t>(j) * o.size.width + i;
    return normal_pair(key, static_cast<std::uint64_t>(pixel)).first;
  };
  if (!o.faults.correlated_noise) return white(x, y);
  double sum = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i)
      sum += (2 - std::abs(i)) * (2 - std::abs(j)) *
             white((x + i + o.size.width) % o.size.width, (y + j + o.size.height) % o.size.height);
  return sum / 6;  // the squares of the weights add up to 36
}

/// Grey that the row and the column of a pixel add.
double lines_at(const SynthOptions& o, int x, int y) {
  const auto of_line = [&](std::uint64_t axis, int line) {
    return o.faults.line_pattern * normal_pair(mix(o.seed + axis), static_cast<std::uint64_t>(line)).first;
  };
  return o.faults.line_pattern > 0 ? of_line(0x1c01, x) + of_line(0x1205, y) : 0;
}

/// White and black pixels, the same in every frame of a specimen.
template <typename T>
void add_defects(const SynthOptions& o, T white, Image& image) {
  const double share = o.faults.defective;
  for (int y = 0; share > 0 && y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      const auto pixel = static_cast<std::uint64_t>(std::int64_t{y} * image.width() + x);
      const double value = uniform(mix(mix(o.seed + 0xdef) + pixel));
      if (value < share) image.row<T>(y)[x] = value < share / 3 ? T{0} : white;
    }
}

/// The image after a median filter of `side` px, odd; beyond the border the outermost pixels continue.
template <typename T>
Image median_of(const Image& image, int side, core::ThreadPool& pool) {
  Image out(image.size(), image.type());
  core::for_each_row(pool, image.height(), [&](int y) {
    std::vector<T> around(static_cast<std::size_t>(side) * side);
    for (int x = 0; x < image.width(); ++x) {
      for (int k = 0; k < side * side; ++k)
        around[k] = image.row<T>(
            std::clamp(y + k / side - side / 2, 0,
                       image.height() - 1))[std::clamp(x + k % side - side / 2, 0, image.width() - 1)];
      const auto middle = around.begin() + side * side / 2;
      std::ranges::nth_element(around, middle);
      out.row<T>(y)[x] = *middle;
    }
  });
  return out;
}

template <typename T>
void expose_as(const SynthOptions& options, const std::vector<double>& pattern, int i, std::uint64_t key,
               core::ThreadPool& pool, Image& image) {
  const auto last = static_cast<double>(std::max<std::size_t>(1, options.amounts.size() - 1));
  const double gain = 1 + (options.gain - 1) * i / last, offset = options.offset * i / last;
  const double noise = i == 0 ? options.reference_noise.value_or(options.noise) : options.noise;
  const double white = std::ldexp(1.0, options.bits) - 1, level = white / 255;
  const double electrons = options.full_well / 255;  // electrons per grey level
  core::for_each_row(pool, image.height(), [&](int y) {
    T* row = image.row<T>(y);
    for (int x = 0; x < image.width(); ++x) {
      const std::int64_t pixel = static_cast<std::int64_t>(y) * image.width() + x;
      double grey = pattern[pixel] * light_at(options, x) * gain + offset + glare_at(options, x, y);
      if (electrons > 0)
        grey = poisson(mix(key), static_cast<std::uint64_t>(pixel), grey * electrons) / electrons;
      if (noise > 0) grey += noise * noise_at(options, key, x, y);
      grey += lines_at(options, x, y);
      if (options.faults.two_valued) grey = grey < 127.5 ? 0 : 255;
      row[x] = static_cast<T>(std::lround(std::clamp(grey * level + options.faults.pedestal, 0.0, white)));
    }
  });
  add_defects(options, static_cast<T>(white), image);
  if (options.faults.median > 0) image = median_of<T>(image, options.faults.median, pool);
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

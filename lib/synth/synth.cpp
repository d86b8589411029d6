#include "synth/synth.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <string>

#include "synth/motion.hpp"
#include "synth/random.hpp"
#include "synth/speckle.hpp"

namespace dic {
namespace {

constexpr double kGap = -std::numeric_limits<double>::infinity();  // blob sum where a crack is open

const SynthOptions& checked(const SynthOptions& options) {
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
  return options;
}

SpeckleSettings speckle_settings(const SynthOptions& options) {
  const double cell = options.density ? 1 / std::sqrt(*options.density) : 2 * options.blob_sigma;
  return {options.blob_sigma, cell, options.seed};
}

/// Reference positions that a frame shows. Motion is continuous (but for the crack, which only shifts), so
/// what the frame's border shows encloses the rest.
Box reference_box(const SynthOptions& options, double amount) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Box box{kInfinity, -kInfinity, kInfinity, -kInfinity};
  const auto include = [&](int x, int y) {
    const auto p = reference_position(options.motion, amount, x, y);
    if (!p) return;
    box = {std::min(box.x_min, p->x), std::max(box.x_max, p->x), std::min(box.y_min, p->y),
           std::max(box.y_max, p->y)};
  };
  for (int x = 0; x < options.size.width; ++x) include(x, 0), include(x, options.size.height - 1);
  for (int y = 0; y < options.size.height; ++y) include(0, y), include(options.size.width - 1, y);
  // Between two border pixels the border may bulge by less than a pixel.
  return {box.x_min - 1, box.x_max + 1, box.y_min - 1, box.y_max + 1};
}

}  // namespace

Synthesizer::Synthesizer(const SynthOptions& options) : options_(checked(options)), pool_(options.threads) {
  const std::vector<double> sums = blob_sums(0);
  const auto [low, high] = std::ranges::minmax(sums);
  darkest_ = low;
  contrast_ = high > low ? (options_.grey_max - options_.grey_min) / (high - low) : 0;
}

std::vector<double> Synthesizer::blob_sums(double amount) {
  const Speckle speckle(speckle_settings(options_), reference_box(options_, amount));
  std::vector<double> sums(static_cast<std::size_t>(options_.size.width) * options_.size.height);
  pool_.parallel_for(options_.size.height, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y)
      for (int x = 0; x < options_.size.width; ++x) {
        const auto p = reference_position(options_.motion, amount, x, static_cast<double>(y));
        sums[y * options_.size.width + x] = p ? speckle.at(p->x, p->y) : kGap;
      }
  });
  return sums;
}

template <typename T>
void Synthesizer::expose(const std::vector<double>& sums, int i, Image& image) {
  const auto last = static_cast<double>(std::max<std::size_t>(1, options_.amounts.size() - 1));
  const double gain = 1 + (options_.gain - 1) * i / last, offset = options_.offset * i / last;
  const double noise = i == 0 ? options_.reference_noise.value_or(options_.noise) : options_.noise;
  const double white = std::numeric_limits<T>::max(), level = white / 255;
  const std::uint64_t key = mix(mix(options_.seed) ^ mix(static_cast<std::uint64_t>(i)));
  pool_.parallel_for(image.height(), 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      T* row = image.row<T>(static_cast<int>(y));
      for (int x = 0; x < image.width(); ++x) {
        const std::int64_t pixel = y * image.width() + x;
        const double above = sums[pixel] == kGap ? 0 : contrast_ * (sums[pixel] - darkest_);
        double grey = (options_.grey_min + above) * gain + offset;
        if (noise > 0) grey += noise * normal_pair(key, static_cast<std::uint64_t>(pixel)).first;
        row[x] = static_cast<T>(std::lround(std::clamp(grey * level, 0.0, white)));
      }
    }
  });
}

Image Synthesizer::frame(int i) {
  if (i < 0 || i >= static_cast<int>(options_.amounts.size()))
    throw UsageError("The sequence has no frame " + std::to_string(i) + ".");
  const std::vector<double> sums = blob_sums(options_.amounts[i]);
  Image image(options_.size, options_.bits == 8 ? ScalarType::u8 : ScalarType::u16);
  if (options_.bits == 8)
    expose<std::uint8_t>(sums, i, image);
  else
    expose<std::uint16_t>(sums, i, image);
  return image;
}

Image synth_frame(const SynthOptions& options, int i) { return Synthesizer(options).frame(i); }

}  // namespace dic

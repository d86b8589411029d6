#include "track/image_pyramid.hpp"

#include <algorithm>
#include <array>
#include <dic/shared/pyramid.hpp>
#include <type_traits>
#include <utility>

namespace dic::track {
namespace {

/// The least and the largest value.
template <typename T>
std::pair<T, T> extremes_of(ImageView image) {
  T low = image.row<T>(0)[0], high = low;
  for (int y = 0; y < image.height; ++y)
    for (const T* at = image.row<T>(y); at < image.row<T>(y) + image.width; ++at) {
      low = std::min(low, *at);
      high = std::max(high, *at);
    }
  return {low, high};
}

Image halved(const Image& in) {
  Image out({in.width() / 2, in.height() / 2}, ScalarType::u8);
  for (int y = 0; y < out.height(); ++y) {
    const std::uint8_t *a = in.row<std::uint8_t>(2 * y), *b = in.row<std::uint8_t>(2 * y + 1);
    std::uint8_t* to = out.row<std::uint8_t>(y);
    for (int x = 0; x < out.width(); ++x)
      to[x] = mean_of_four(a[2 * x], a[2 * x + 1], b[2 * x], b[2 * x + 1]);
  }
  return out;
}

}  // namespace

Image stretched(ImageView image) {
  Image out(image.size(), ScalarType::u8);
  visit_scalar(image.type, [&]<typename T>(T) {
    const auto [low, high] = extremes_of<T>(image);
    const GreyStretch stretch(static_cast<double>(low), static_cast<double>(high));
    const auto apply = [&](const auto& to_byte) {
      for (int y = 0; y < image.height; ++y)
        std::transform(image.row<T>(y), image.row<T>(y) + image.width, out.row<std::uint8_t>(y), to_byte);
    };
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      std::array<std::uint8_t, 256> table{};
      for (int value = low; value <= high; ++value) table[value] = stretch(value);
      apply([&](T value) { return table[value]; });
    } else {
      apply(stretch);
    }
  });
  return out;
}

std::vector<Image> pyramid(Image full_size, int levels) {
  std::vector<Image> out;
  out.push_back(std::move(full_size));
  for (int level = 1; level < levels; ++level) out.push_back(halved(out.back()));
  return out;
}

}  // namespace dic::track

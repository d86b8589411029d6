#include "analysis/image_pyramid.hpp"

#include <algorithm>
#include <array>
#include <dic/shared/pyramid.hpp>
#include <type_traits>
#include <utility>

namespace dic::analysis {
namespace {

/// The least and the largest value.
template <typename T>
std::pair<T, T> extremes_of(ImageView image, core::ThreadPool& pool) {
  std::vector<std::pair<T, T>> of_rows(image.height);
  core::for_each_row(pool, image.height, [&](int y) {
    const T* row = image.row<T>(y);
    T low = row[0], high = row[0];
    for (int x = 0; x < image.width; ++x) {
      low = std::min(low, row[x]);
      high = std::max(high, row[x]);
    }
    of_rows[y] = {low, high};
  });
  std::pair<T, T> all = of_rows.front();
  for (const auto& [low, high] : of_rows) all = {std::min(all.first, low), std::max(all.second, high)};
  return all;
}

Image halved(const Image& in, core::ThreadPool& pool) {
  Image out = Image::uninitialized({in.width() / 2, in.height() / 2}, ScalarType::u8);
  core::for_each_row(pool, out.height(), [&](int y) {
    const std::uint8_t *a = in.row<std::uint8_t>(2 * y), *b = in.row<std::uint8_t>(2 * y + 1);
    std::uint8_t* to = out.row<std::uint8_t>(y);
    for (int x = 0; x < out.width(); ++x)
      to[x] = mean_of_four(a[2 * x], a[2 * x + 1], b[2 * x], b[2 * x + 1]);
  });
  return out;
}

}  // namespace

Image stretched(ImageView image, core::ThreadPool& pool) {
  Image out = Image::uninitialized(image.size(), ScalarType::u8);
  visit_scalar(image.type, [&]<typename T>(T) {
    const auto [low, high] = extremes_of<T>(image, pool);
    const GreyStretch stretch(static_cast<double>(low), static_cast<double>(high));
    const auto apply = [&](const auto& to_byte) {
      core::for_each_row(pool, image.height, [&](int y) {
        std::transform(image.row<T>(y), image.row<T>(y) + image.width, out.row<std::uint8_t>(y), to_byte);
      });
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

std::vector<Image> pyramid(Image full_size, int levels, core::ThreadPool& pool) {
  std::vector<Image> out;
  out.push_back(std::move(full_size));
  for (int level = 1; level < levels; ++level) out.push_back(halved(out.back(), pool));
  return out;
}

}  // namespace dic::analysis

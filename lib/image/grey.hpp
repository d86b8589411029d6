#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dic::image {

/// The ITU-R BT.601 luma, correctly rounded. Its weights add up to one, so equal channels keep their value.
template <typename T>
T luma(T r, T g, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(0.299 * r + 0.587 * g + 0.114 * b);
  else
    return static_cast<T>((299u * r + 587u * g + 114u * b + 500u) / 1000u);
}

/// The type in which the luma of samples is computed: integers of the image's own types keep to the rule for
/// them; all others are computed in double and rounded once.
template <typename T>
using LumaType =
    std::conditional_t<std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t>, T, double>;

/// The samples of a row: pointers to the first one of each channel, and the samples from pixel to pixel.
template <typename T>
struct Channels {
  std::array<const T*, 3> rgb;
  int stride = 3;
  const T* black = nullptr;  ///< the fourth ink of CMYK, whose others are in `rgb`
};

template <typename T, typename Out>
void grey_row(const Channels<T>& row, int width, Out* out) {
  using Luma = LumaType<T>;
  const auto [r, g, b] = row.rgb;
  for (int x = 0, i = 0; x < width; ++x, i += row.stride)
    out[x] = static_cast<Out>(
        luma<Luma>(static_cast<Luma>(r[i]), static_cast<Luma>(g[i]), static_cast<Luma>(b[i])));
}

/// The grey of inks, 0 = none: R = (1 - C) (1 - K), and G and B alike.
template <typename T>
void grey_row_of_inks(const Channels<T>& row, int width, T* out) {
  constexpr double kFull = std::numeric_limits<T>::max();
  const auto [c, m, y] = row.rgb;
  for (int x = 0, i = 0; x < width; ++x, i += row.stride) {
    const double light = (kFull - row.black[i]) / kFull;
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): the grey is at least 0
    out[x] = static_cast<T>(luma<double>(kFull - c[i], kFull - m[i], kFull - y[i]) * light + 0.5);
  }
}

}  // namespace dic::image

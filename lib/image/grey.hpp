#pragma once

#include <array>
#include <cstdint>
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

/// The samples of a row: pointers to the first one of each channel, and the samples from pixel to pixel.
template <typename T>
struct Channels {
  std::array<const T*, 3> rgb;
  int stride = 3;
};

template <typename T, typename Out>
void grey_row(const Channels<T>& row, int width, Out* out) {
  const auto [r, g, b] = row.rgb;
  for (int x = 0, i = 0; x < width; ++x, i += row.stride) out[x] = static_cast<Out>(luma(r[i], g[i], b[i]));
}

}  // namespace dic::image

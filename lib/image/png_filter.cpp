#include "image/png_filter.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

namespace dic::image {
namespace {

/// The Paeth predictor: the one of left, above and corner that is nearest to left + above - corner.
int paeth(int left, int above, int corner) {
  const int to_left = std::abs(above - corner), to_above = std::abs(left - corner);
  const int to_corner = std::abs(left + above - 2 * corner);
  const int nearer = to_above <= to_corner ? above : corner;
  return to_left <= to_above && to_left <= to_corner ? left : nearer;
}

/// Adds predict(left, above, corner) to each byte. As PixelBytes is a constant, the compiler keeps `left` and
/// `corner` of a pixel in registers; loading what was just stored would take twice the time.
template <int PixelBytes, typename Predict>
void add_prediction(std::span<const std::uint8_t> filtered, const std::uint8_t* above, std::uint8_t* row,
                    const Predict& predict) {
  int left[PixelBytes] = {}, corner[PixelBytes] = {};
  for (std::size_t i = 0; i + PixelBytes <= filtered.size(); i += PixelBytes) {
    for (int b = 0; b < PixelBytes; ++b) {
      const int up = above[i + b];
      left[b] = (filtered[i + b] + predict(left[b], up, corner[b])) & 0xff;
      corner[b] = up;
      row[i + b] = static_cast<std::uint8_t>(left[b]);
    }
  }
}

/// Adds to each byte of grey the byte to the left, eight bytes at a time: sums of pairs lie in lanes of 16
/// bits, where the sum of eight bytes does not overflow, and a product adds up the lanes. Only `left` depends
/// on the eight bytes before.
void add_left(std::span<const std::uint8_t> filtered, std::uint8_t* row) {
  constexpr std::uint64_t kEven = 0x00ff00ff00ff00ff, kLanes = 0x0001000100010001;
  std::uint64_t left = 0;
  std::size_t i = 0;
  for (; std::endian::native == std::endian::little && i + 8 <= filtered.size(); i += 8) {
    std::uint64_t bytes;
    std::memcpy(&bytes, filtered.data() + i, 8);
    const std::uint64_t odd = (bytes >> 8) & kEven, sums = ((bytes & kEven) + odd) * kLanes;
    const std::uint64_t from_left = sums + left * kLanes;
    bytes = ((from_left - odd) & kEven) | (from_left & kEven) << 8;
    std::memcpy(row + i, &bytes, 8);
    left = (left + (sums >> 48)) & 0xff;
  }
  for (; i < filtered.size(); ++i) row[i] = static_cast<std::uint8_t>(left = (left + filtered[i]) & 0xff);
}

template <int PixelBytes>
bool unfilter(std::span<const std::uint8_t> filtered, int filter, const std::uint8_t* above,
              std::uint8_t* row) {
  switch (filter) {
    case 0:
      std::memcpy(row, filtered.data(), filtered.size());
      return true;
    case 1:
      if constexpr (PixelBytes == 1)
        add_left(filtered, row);
      else
        add_prediction<PixelBytes>(filtered, above, row, [](int left, int, int) { return left; });
      return true;
    case 2:
      add_prediction<PixelBytes>(filtered, above, row, [](int, int up, int) { return up; });
      return true;
    case 3:
      add_prediction<PixelBytes>(filtered, above, row,
                                 [](int left, int up, int) { return (left + up) >> 1; });
      return true;
    case 4:
      add_prediction<PixelBytes>(filtered, above, row, paeth);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool png_unfilter(std::span<const std::uint8_t> filtered, int filter, const std::uint8_t* above,
                  std::size_t pixel_bytes, std::uint8_t* row) {
  switch (pixel_bytes) {
    case 1:
      return unfilter<1>(filtered, filter, above, row);
    case 2:
      return unfilter<2>(filtered, filter, above, row);
    case 3:
      return unfilter<3>(filtered, filter, above, row);
    case 4:
      return unfilter<4>(filtered, filter, above, row);
    case 6:
      return unfilter<6>(filtered, filter, above, row);
    case 8:
      return unfilter<8>(filtered, filter, above, row);
    default:
      return false;
  }
}

}  // namespace dic::image

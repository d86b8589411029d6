#include "live/pixel_format.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dic/error.hpp>
#include <iterator>

namespace dic::live {
namespace {

/// How samples lie in memory.
enum class Layout : std::uint8_t {
  whole,   ///< one or two bytes each, low byte first
  lsb,     ///< without gaps, from the lowest bit on (Mono10p, Mono12p)
  packed,  ///< two samples in three bytes, their low bits in the middle one (GigE Vision's Mono10Packed)
  rgb,
  bgr
};
struct Format {
  std::uint32_t number;
  int bits;
  Layout layout;
};
constexpr Format kFormats[] = {
    {0x01080001, 8, Layout::whole},  {0x01100003, 10, Layout::whole},  {0x01100005, 12, Layout::whole},
    {0x01100025, 14, Layout::whole}, {0x01100007, 16, Layout::whole},  {0x010A0046, 10, Layout::lsb},
    {0x010C0047, 12, Layout::lsb},   {0x010C0004, 10, Layout::packed}, {0x010C0006, 12, Layout::packed},
    {0x02180014, 8, Layout::rgb},    {0x02180015, 8, Layout::bgr},
};

const Format& known(std::uint32_t number) {
  const auto* found = std::ranges::find(kFormats, number, &Format::number);
  if (found != std::end(kFormats)) return *found;
  char text[16];
  std::snprintf(text, sizeof text, "0x%08X", number);
  throw DeviceError("The camera sends frames in the pixel format " + std::string(text) +
                    ", which is not read: choose Mono8 or another grey format.");
}

std::size_t bytes_of(const Format& format, std::size_t pixels) {
  const std::size_t bits_per_pixel = format.number >> 16 & 0xff;
  return (pixels * bits_per_pixel + 7) / 8;
}

void take_lsb(const std::uint8_t* in, int bits, std::size_t count, std::uint16_t* out) {
  std::uint32_t window = 0;
  int available = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; available < bits; available += 8) window |= std::uint32_t{*in++} << available;
    out[i] = static_cast<std::uint16_t>(window & ((1u << bits) - 1));
    window >>= bits;
    available -= bits;
  }
}

void take_packed(const std::uint8_t* in, int bits, std::size_t count, std::uint16_t* out) {
  const int low_bits = bits - 8;
  const unsigned mask = (1u << low_bits) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* three = in + i / 2 * 3;
    const unsigned low = i % 2 == 0 ? three[1] & mask : three[1] >> 4 & mask;
    out[i] = static_cast<std::uint16_t>(unsigned{three[i % 2 == 0 ? 0 : 2]} << low_bits | low);
  }
}

void take_colour(const std::uint8_t* in, bool is_bgr, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i, in += 3) {
    const unsigned r = in[is_bgr ? 2 : 0], g = in[1], b = in[is_bgr ? 0 : 2];
    out[i] = static_cast<std::uint8_t>((299 * r + 587 * g + 114 * b + 500) / 1000);  // as image files
  }
}

}  // namespace

Image image_of(std::span<const std::uint8_t> buffer, Size size, std::uint32_t number) {
  const Format& format = known(number);
  const std::size_t pixels = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  if (bytes_of(format, pixels) > buffer.size())
    throw DeviceError("The camera sent " + std::to_string(buffer.size()) + " bytes for a frame of " +
                      std::to_string(size.width) + "x" + std::to_string(size.height) +
                      " px, which are too few: choose another pixel format or region.");
  Image image = Image::uninitialized(size, format.bits > 8 ? ScalarType::u16 : ScalarType::u8,
                                     format.bits > 8 && format.bits < 16 ? format.bits : 0);
  switch (format.layout) {
    case Layout::whole:
      std::memcpy(image.row<std::uint8_t>(0), buffer.data(), bytes_of(format, pixels));
      break;
    case Layout::lsb:
      take_lsb(buffer.data(), format.bits, pixels, image.row<std::uint16_t>(0));
      break;
    case Layout::packed:
      take_packed(buffer.data(), format.bits, pixels, image.row<std::uint16_t>(0));
      break;
    case Layout::rgb:
    case Layout::bgr:
      take_colour(buffer.data(), format.layout == Layout::bgr, pixels, image.row<std::uint8_t>(0));
      break;
  }
  return image;
}

}  // namespace dic::live

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dic::test {

/// A tag of a TIFF.
struct TiffTag {
  std::uint16_t name;
  std::uint16_t type;  // 3: 16 bit, 4: 32 bit
  std::vector<std::uint32_t> values;
};

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255);
  return text;
}

/// A page of one uncompressed block per entry of `blocks`, with tags as given.
struct TiffPageBytes {
  std::vector<TiffTag> tags;
  std::vector<std::string> blocks;
  bool tiled = false;
};

/// A little-endian TIFF of pages, each behind its pixels.
inline std::string tiff(std::vector<TiffPageBytes> pages) {
  std::string data("II*\0\0\0\0\0", 8);
  std::size_t link = 4;  // where the offset of the next directory belongs
  const auto here = [&] { return static_cast<std::uint32_t>(data.size()); };
  for (TiffPageBytes& page : pages) {
    TiffTag offsets{static_cast<std::uint16_t>(page.tiled ? 324 : 273), 4, {}};
    TiffTag counts{static_cast<std::uint16_t>(page.tiled ? 325 : 279), 4, {}};
    for (const auto& block : page.blocks) {
      offsets.values.push_back(here());
      counts.values.push_back(static_cast<std::uint32_t>(block.size()));
      data += block;
    }
    page.tags.push_back(offsets);
    page.tags.push_back(counts);
    std::sort(page.tags.begin(), page.tags.end(), [](auto& a, auto& b) { return a.name < b.name; });
    std::string directory = little_endian(page.tags.size(), 2);
    for (const auto& tag : page.tags) {
      const int size = tag.type == 4 ? 4 : tag.type == 3 ? 2 : 1;
      std::string values;
      for (auto value : tag.values) values += little_endian(value, size);
      directory +=
          little_endian(tag.name, 2) + little_endian(tag.type, 2) + little_endian(tag.values.size(), 4);
      if (values.size() > 4) {
        directory += little_endian(here(), 4);
        data += values;
      } else {
        values.resize(4);
        directory += values;
      }
    }
    data.replace(link, 4, little_endian(here(), 4));
    data += directory + std::string(4, '\0');
    link = data.size() - 4;
  }
  return data;
}

inline std::string tiff(std::vector<TiffTag> tags, std::vector<std::string> blocks, bool tiled = false) {
  return tiff({TiffPageBytes{std::move(tags), std::move(blocks), tiled}});
}

/// Tags of an image: size, bits of one sample, photometric interpretation, samples.
inline std::vector<TiffTag> tiff_tags(int width, int height, int bits, int photometric, int samples = 1) {
  const auto u = [](int v) { return static_cast<std::uint32_t>(v); };
  return {{256, 3, {u(width)}},
          {257, 3, {u(height)}},
          {258, 3, std::vector<std::uint32_t>(samples, u(bits))},
          {262, 3, {u(photometric)}},
          {277, 3, {u(samples)}},
          {278, 3, {u(height)}}};
}

/// A tag with a text.
inline TiffTag tiff_text(std::uint16_t name, const std::string& text) {
  TiffTag tag{name, 2, {}};
  for (const char c : text) tag.values.push_back(static_cast<unsigned char>(c));
  tag.values.push_back(0);
  return tag;
}

}  // namespace dic::test

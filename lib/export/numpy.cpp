#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "export/selection.hpp"
#include "export/zip_file.hpp"

namespace dic::exporting {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they are in memory");

/// The type of an array in NumPy's format NPY.
std::string descriptor(ScalarType type) {
  switch (type) {
    case ScalarType::u8:
      return "|u1";
    case ScalarType::u16:
      return "<u2";
    case ScalarType::i32:
      return "<i4";
    case ScalarType::f32:
      return "<f4";
    case ScalarType::f64:
      break;
  }
  return "<f8";
}

/// The header of NPY, version 1: padded so that the data begins at a multiple of 64 bytes.
std::string npy_header(const std::string& type, const std::vector<std::size_t>& shape) {
  std::string text = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const std::size_t size : shape) text += std::to_string(size) + ",";
  text += "), }";
  constexpr std::size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ') += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xFF) +
         static_cast<char>(length >> 8) + text;
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void write_numbers(ZipFile& zip, const std::string& name, const std::vector<double>& values) {
  zip.begin(name + ".npy");
  zip.write(npy_header("<f8", {values.size()}));
  zip.write(bytes_of(values));
}

/// The characters of UTF-8; a byte that belongs to none counts as U+FFFD.
std::u32string decoded(const std::string& text) {
  std::u32string characters;
  for (std::size_t k = 0; k < text.size();) {
    const auto first = static_cast<unsigned char>(text[k]);
    const std::size_t length = first < 0x80    ? 1
                               : first >= 0xF0 ? 4
                               : first >= 0xE0 ? 3
                               : first >= 0xC0 ? 2
                                               : 0;
    bool is_whole = length > 0 && k + length <= text.size();
    char32_t code = length == 1 ? first : first & (0x7F >> length);
    for (std::size_t i = 1; is_whole && i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[k + i]);
      is_whole = (next & 0xC0) == 0x80;
      code = code << 6 | (next & 0x3F);
    }
    const bool is_character = is_whole && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    characters += is_character ? code : U'\xFFFD';
    k += is_whole ? length : 1;
  }
  return characters;
}

/// Writes texts as NumPy's text, characters of 4 bytes.
void write_texts(ZipFile& zip, const std::string& name, const std::vector<std::string>& texts) {
  std::vector<std::u32string> all;
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, all.emplace_back(decoded(text)).size());
  zip.begin(name + ".npy");
  zip.write(npy_header("<U" + std::to_string(longest), {texts.size()}));
  for (std::u32string& text : all) {
    text.resize(longest, U'\0');
    zip.write({reinterpret_cast<const char*>(text.data()), text.size() * sizeof(char32_t)});
  }
}

}  // namespace

void write_npz(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const Result& result = selection.result;
  const Grid& grid = result.grid();
  const std::size_t nx = grid.nx, ny = grid.ny;
  ZipFile zip(path);
  for (const ResultArray& array : selection.arrays) {
    steps.next();
    zip.begin(array.name + ".npy");
    zip.write(npy_header(descriptor(array.type), {selection.frames.size(), ny, nx}));
    visit_scalar(array.type, [&]<typename T>(T) {
      if constexpr (!std::is_same_v<T, std::uint16_t>)  // a type that no array has
        for (const int frame : selection.frames) zip.write(bytes_of(result.values<T>(array.name, frame)));
    });
  }
  write_numbers(zip, "frame", selection.frame_numbers());
  if (selection.has_seconds()) write_numbers(zip, "time", selection.times());
  write_texts(zip, "file", selection.files());
  write_numbers(zip, "x", selection.x());
  write_numbers(zip, "y", selection.y());
  zip.begin("inside.npy");
  zip.write(npy_header("|u1", {ny, nx}));
  zip.write(bytes_of(grid.inside));
  if (result.positions()) {
    for (const auto& [name, positions] :
         {std::pair("X", &result.positions()->x), std::pair("Y", &result.positions()->y)}) {
      std::vector<double> values(positions->begin(), positions->end());
      for (double& value : values) value *= result.info().length_factor();
      zip.begin(std::string(name) + ".npy");
      zip.write(npy_header("<f8", {ny, nx}));
      zip.write(bytes_of(values));
    }
  }
  write_texts(zip, "length_unit", {result.info().length_unit()});
  zip.commit();
}

}  // namespace dic::exporting

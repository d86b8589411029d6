#include "image/mraw.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include "image/codecs.hpp"
#include "image/endings.hpp"
#include "image/packed.hpp"
#include "image/raw_file.hpp"

namespace dic::image {
namespace {

namespace fs = std::filesystem;

struct MrawHeader {
  std::int64_t frames = 0;
  int width = 0, height = 0, bits = 0, effective_bits = 0;
  bool is_left_justified = false;
  double frames_per_second = 0, step = 1;
  std::string format;

  std::uint64_t frame_bits() const {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) *
           static_cast<std::uint64_t>(bits);
  }
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

/// The number that a text begins with; 0 if it begins with none.
template <typename T>
T number_in(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The value of "Key : Value" in a .cih; empty if there is none.
std::string_view value_of(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
    begin = end + 1;
  }
  return {};
}

/// The contents of nested elements of a .cihx, the outermost first; empty if one is missing.
std::string_view element(std::string_view text, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
    const std::size_t begin = text.find(open), end = text.find(close, begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return {};
    text = text.substr(begin + open.size(), end - begin - open.size());
  }
  return trimmed(text);
}

/// The values of a description by name, regardless of which of the two kinds it is.
class Description {
 public:
  explicit Description(std::string_view text)
      : text_(text), is_xml_(text.find("<cih>") != std::string_view::npos) {
    if (is_xml_) text_ = element(text, {"cih"});
  }
  std::string_view get(std::string_view key, std::initializer_list<std::string_view> names) const {
    return is_xml_ ? element(text_, names) : value_of(text_, key);
  }

 private:
  std::string_view text_;
  bool is_xml_;
};

MrawHeader parse(std::string_view text) {
  const Description description(text);
  MrawHeader header;
  header.frames = number_in<std::int64_t>(description.get("Total Frame", {"frameInfo", "totalFrame"}));
  header.step = std::max(1.0, number_in<double>(description.get("Save Step", {"frameInfo", "skipFrame"})));
  header.width = number_in<int>(description.get("Image Width", {"imageDataInfo", "resolution", "width"}));
  header.height = number_in<int>(description.get("Image Height", {"imageDataInfo", "resolution", "height"}));
  header.bits = number_in<int>(description.get("Color Bit", {"imageDataInfo", "colorInfo", "bit"}));
  header.effective_bits =
      number_in<int>(description.get("EffectiveBit Depth", {"imageDataInfo", "effectiveBit", "depth"}));
  header.is_left_justified =
      lower_case(description.get("EffectiveBit Side", {"imageDataInfo", "effectiveBit", "side"})) == "higher";
  header.frames_per_second =
      number_in<double>(description.get("Record Rate(fps)", {"recordInfo", "recordRate"}));
  header.format = lower_case(description.get("File Format", {"imageFileInfo", "fileFormat"}));
  return header;
}

void check(const MrawHeader& header) {
  if (header.frames <= 0 || header.width <= 0 || header.height <= 0 || header.bits <= 0)
    throw Refusal(
        "has a description without number of frames, width, height or bits; copy or export it again.");
  check_size(header.width, header.height);
  if (!header.format.empty() && header.format != "mraw")
    throw Refusal("belongs to a recording that was saved as " + header.format +
                  ", not as MRAW; name those files.");
  constexpr std::array kBits = {8, 10, 12, 14, 16};
  if (std::ranges::find(kBits, header.bits) == kBits.end())
    throw Refusal("has " + std::to_string(header.bits) +
                  " bits per pixel, which is not supported; export it as TIFF.");
}

class Mraw : public FrameFile {
 public:
  Mraw(const fs::path& pixels, const MrawHeader& header) : header_(header), file_(pixels) {}

  std::int64_t count() const override { return header_.frames; }

  Image read(std::int64_t i, ImageBuffers& buffers) const override {
    const std::uint64_t size = (header_.frame_bits() + 7) / 8;
    const auto index = static_cast<std::uint64_t>(i);
    if (index >= file_.size() / size)
      throw damaged("MRAW recording", "it is shorter than its description says");
    if (header_.bits == 8) {
      Image image = Image::uninitialized({header_.width, header_.height}, ScalarType::u8);
      fetch(index * size, {image.row<std::uint8_t>(0), size});
      return image;
    }
    Image image = Image::uninitialized({header_.width, header_.height}, ScalarType::u16, bit_depth());
    if (header_.bits == 16) {
      fetch(index * size, {image.row<std::uint8_t>(0), size});
      return image;
    }
    const std::span<std::uint8_t> packed = buffers.file.get(size);
    fetch(index * size, packed);
    unpack(packed.data(), header_.bits, static_cast<std::size_t>(header_.frame_bits()) / header_.bits,
           image.row<std::uint16_t>(0));
    return image;
  }

  std::optional<double> frames_per_second() const override {
    return header_.frames_per_second > 0 ? std::optional(header_.frames_per_second / header_.step)
                                         : std::nullopt;
  }

 private:
  int bit_depth() const {
    if (header_.bits < 16) return header_.bits;
    const bool is_known = header_.effective_bits > 8 && header_.effective_bits < 16;
    return is_known && !header_.is_left_justified ? header_.effective_bits : 0;
  }

  void fetch(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
    if (!file_.read(offset, bytes))
      throw damaged("MRAW recording", "it is shorter than its description says");
  }

  MrawHeader header_;
  RawFile file_;
};

std::string text_of(const fs::path& path) {
  constexpr std::uint64_t kMost = 1 << 24;
  const RawFile file(path);
  std::vector<std::uint8_t> bytes(std::min(file.size(), kMost));
  if (!file.read(0, bytes)) throw damaged("description of a recording", "it cannot be read");
  return {bytes.begin(), bytes.end()};
}

/// The file beside `path` with one of these endings; empty if there is none.
fs::path beside(fs::path path, std::initializer_list<const char*> endings) {
  for (const char* ending : endings)
    if (std::error_code ignored; fs::exists(path.replace_extension(ending), ignored)) return path;
  return {};
}

}  // namespace

std::unique_ptr<FrameFile> open_mraw(const fs::path& pixels, std::string_view description) {
  const MrawHeader header = parse(description);
  check(header);
  return std::make_unique<Mraw>(pixels, header);
}

std::unique_ptr<FrameFile> open_mraw(const fs::path& path) {
  const bool is_description = lower_case_ending(path).starts_with(".cih");
  const fs::path pixels = is_description ? beside(path, {".mraw", ".MRAW", ".Mraw"}) : path;
  if (pixels.empty()) throw Refusal("describes a recording whose .mraw is not beside it; copy that too.");
  const fs::path description = is_description ? path : beside(path, {".cihx", ".CIHX", ".cih", ".CIH"});
  if (description.empty())
    throw Refusal("needs the .cihx or .cih of the same name that describes it beside it; copy that too.");
  return open_mraw(pixels, text_of(description));
}

}  // namespace dic::image

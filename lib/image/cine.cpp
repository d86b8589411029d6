#include "image/cine.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/orientation.hpp"
#include "image/packed.hpp"
#include "image/raw_file.hpp"

namespace dic::image {
namespace {

// Layout of the format, by Vision Research: offsets in bytes from the start of each structure, low bytes
// first.
constexpr std::size_t kFileHeader = 44, kBitmapHeader = 40, kSetup = 900;
constexpr std::size_t kFlipAcross = 756, kFlipUp = 760, kFrameRate = 768, kRealBits = 896;  // in the setup
constexpr std::size_t kSetupMark = 140, kSetupLength = 142, kBlockHead = 8;
constexpr std::uint16_t kTimesOnly = 1002;  // type of the block with the time of each frame

/// How the pixels of a frame are stored.
enum class Packing { whole, ten_bits, twelve_bits };

struct CineHeader {
  std::uint32_t frames = 0;
  int width = 0, height = 0, bits = 0, real_bits = 0;
  Packing packing = Packing::whole;
  bool flip_across = false, flip_up = false;
  double frames_per_second = 0;

  int channels() const { return bits == 24 || bits == 48 ? 3 : 1; }
  bool is_deep() const { return packing != Packing::whole || bits == 16 || bits == 48; }
  std::uint64_t row_bits() const {
    const std::uint64_t pixel = packing == Packing::ten_bits      ? 10
                                : packing == Packing::twelve_bits ? 12
                                                                  : bits;
    return pixel * static_cast<std::uint64_t>(width);
  }
};

Refusal damaged_cine(const char* detail) { return damaged("CINE recording", detail); }

std::vector<std::uint8_t> piece(const RawFile& file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset)
    throw damaged_cine("it is shorter than its header says");
  std::vector<std::uint8_t> bytes(size);
  if (!file.read(offset, bytes)) throw damaged_cine("it is shorter than its header says");
  return bytes;
}

Packing packing_of(std::uint32_t compression) {
  constexpr std::uint32_t kPlain = 0, kTenBits = 256, kTwelveBits = 1024;
  if (compression == kPlain) return Packing::whole;
  if (compression == kTenBits) return Packing::ten_bits;
  if (compression == kTwelveBits) return Packing::twelve_bits;
  throw Refusal("is a CINE recording with a packing that is not supported (" + std::to_string(compression) +
                "); export it as TIFF.");
}

void read_bitmap(std::span<const std::uint8_t> bitmap, CineHeader& header) {
  header.width = static_cast<std::int32_t>(little_endian<std::uint32_t>(bitmap, 4));
  const auto height = static_cast<std::int32_t>(little_endian<std::uint32_t>(bitmap, 8));
  header.bits = little_endian<std::uint16_t>(bitmap, 14);
  header.packing = packing_of(little_endian<std::uint32_t>(bitmap, 16));
  if (height == INT32_MIN) throw damaged_cine("its height is wrong");
  header.height = std::abs(height);
  check_size(header.width, header.height);
  constexpr std::array kBits = {8, 16, 24, 48};
  if (header.packing == Packing::whole && std::ranges::find(kBits, header.bits) == kBits.end())
    throw Refusal("is a CINE recording of " + std::to_string(header.bits) +
                  " bits per pixel, which is not supported; export it as TIFF.");
}

void read_setup(std::span<const std::uint8_t> setup, CineHeader& header) {
  if (setup[kSetupMark] != 'S' || setup[kSetupMark + 1] != 'T')
    throw damaged_cine("its setup is not where it should be");
  const auto length = little_endian<std::uint16_t>(setup, kSetupLength);
  if (length < kSetup) {  // old cameras: the first field is the frame rate
    header.frames_per_second = little_endian<std::uint16_t>(setup, 0);
    return;
  }
  header.flip_across = little_endian<std::uint32_t>(setup, kFlipAcross) != 0;
  header.flip_up = little_endian<std::uint32_t>(setup, kFlipUp) != 0;
  header.frames_per_second = little_endian<std::uint32_t>(setup, kFrameRate);
  header.real_bits =
      static_cast<int>(std::min<std::uint32_t>(little_endian<std::uint32_t>(setup, kRealBits), 16));
}

/// Converts rows of 8 or 16 bits per sample, in colour with blue first.
template <typename T>
void grey_rows(const CineHeader& header, std::span<const std::uint8_t> bytes, std::size_t pitch,
               Image& image) {
  for (int y = 0; y < header.height; ++y) {
    const T* row = reinterpret_cast<const T*>(bytes.data() + static_cast<std::size_t>(y) * pitch);
    if (header.channels() == 1)
      std::copy(row, row + header.width, image.row<T>(y));
    else
      grey_row(Channels<T>{{row + 2, row + 1, row}}, header.width, image.row<T>(y));
  }
}

class Cine : public FrameFile {
 public:
  explicit Cine(const std::filesystem::path& path) : file_(path) {
    const std::vector<std::uint8_t> head = piece(file_, 0, kFileHeader);
    if (head[0] != 'C' || head[1] != 'I') throw damaged_cine("it does not begin as one");
    constexpr std::uint16_t kLeadJpeg = 1;
    if (little_endian<std::uint16_t>(head, 4) == kLeadJpeg)
      throw Refusal("is a CINE recording compressed as JPEG, which is not supported; export it as TIFF.");
    header_.frames = little_endian<std::uint32_t>(head, 20);
    if (header_.frames == 0) throw Refusal("is a CINE recording without frames; record again.");
    const std::uint64_t bitmap = little_endian<std::uint32_t>(head, 24),
                        setup = little_endian<std::uint32_t>(head, 28),
                        offsets = little_endian<std::uint32_t>(head, 32);
    read_bitmap(piece(file_, bitmap, kBitmapHeader), header_);
    const std::uint64_t length =
        std::min<std::uint64_t>(kSetup, file_.size() - std::min(setup, file_.size()));
    std::vector<std::uint8_t> fields = piece(file_, setup, length);
    fields.resize(kSetup);
    read_setup(fields, header_);
    read_offsets(offsets, little_endian<std::uint16_t>(head, 6) == 0);
    read_times(setup + little_endian<std::uint16_t>(fields, kSetupLength), offsets);
  }

  std::int64_t count() const override { return header_.frames; }

  Image read(std::int64_t i, ImageBuffers& buffers) const override {
    const std::uint64_t at = offsets_.at(static_cast<std::size_t>(i));
    // An annotation is in front of the pixels: its size first, the size of the pixels last.
    const std::uint64_t annotation = little_endian<std::uint32_t>(piece(file_, at, 4), 0);
    if (annotation < 8) throw damaged_cine("the head of a frame is wrong");
    const std::uint64_t size = little_endian<std::uint32_t>(piece(file_, at + annotation - 4, 4), 0);
    const std::uint64_t begin = at + annotation, least = (header_.row_bits() * header_.height + 7) / 8;
    if (size < least || begin > file_.size() || size > file_.size() - begin)
      throw damaged_cine("the pixels of a frame are incomplete");
    const std::span<std::uint8_t> bytes = buffers.file.get(size);
    if (!file_.read(begin, bytes)) throw damaged_cine("the pixels of a frame are incomplete");
    return turned(header_.packing == Packing::whole ? whole_image(bytes) : unpacked_image(bytes));
  }

  std::optional<double> time(std::int64_t i) const override {
    return times_.empty() ? std::nullopt : std::optional(times_.at(static_cast<std::size_t>(i)));
  }
  std::optional<double> frames_per_second() const override {
    return header_.frames_per_second > 0 ? std::optional(header_.frames_per_second) : std::nullopt;
  }

 private:
  void read_offsets(std::uint64_t at, bool are_short) {
    const std::uint64_t size = are_short ? 4 : 8;
    const std::vector<std::uint8_t> table = piece(file_, at, size * header_.frames);
    for (std::size_t i = 0; i < header_.frames; ++i)
      offsets_.push_back(are_short ? little_endian<std::uint32_t>(table, 4 * i)
                                   : little_endian<std::uint64_t>(table, 8 * i));
  }

  /// Reads the times, if there are any, from the blocks between the setup and the table of frames.
  void read_times(std::uint64_t at, std::uint64_t end) {
    while (at + kBlockHead <= std::min(end, file_.size())) {
      const std::vector<std::uint8_t> head = piece(file_, at, kBlockHead);
      const std::uint64_t size = little_endian<std::uint32_t>(head, 0);
      if (size < kBlockHead) return;
      if (little_endian<std::uint16_t>(head, 4) == kTimesOnly && size - kBlockHead >= 8ull * header_.frames) {
        take_times(piece(file_, at + kBlockHead, 8ull * header_.frames));
        return;
      }
      at += size;
    }
  }

  /// Each time is a number of 2^-32 s and one of seconds, since 1970.
  void take_times(std::span<const std::uint8_t> block) {
    const auto first = little_endian<std::uint64_t>(block, 0);
    for (std::size_t i = 0; i < header_.frames; ++i)
      times_.push_back(
          static_cast<double>(static_cast<std::int64_t>(little_endian<std::uint64_t>(block, 8 * i) - first)) *
          0x1p-32);
    if (!std::ranges::is_sorted(times_)) times_.clear();  // not written: the frame rate must do
    if (times_.size() > 1 && times_.back() <= 0) times_.clear();
  }

  Image whole_image(std::span<const std::uint8_t> bytes) const {
    const std::size_t row = header_.row_bits() / 8;
    const std::size_t padded = (row + 3) / 4 * 4;  // as rows of a bitmap are
    const std::size_t pitch =
        padded * static_cast<std::size_t>(header_.height) <= bytes.size() ? padded : row;
    Image image = Image::uninitialized({header_.width, header_.height},
                                       header_.is_deep() ? ScalarType::u16 : ScalarType::u8);
    if (header_.is_deep())
      grey_rows<std::uint16_t>(header_, bytes, pitch, image);
    else
      grey_rows<std::uint8_t>(header_, bytes, pitch, image);
    if (header_.is_deep() && header_.real_bits > 8 && header_.real_bits < 16)
      image.set_bit_depth(header_.real_bits);
    return image;
  }

  Image unpacked_image(std::span<const std::uint8_t> bytes) const {
    const int bits = header_.packing == Packing::ten_bits ? 10 : 12;
    Image image = Image::uninitialized({header_.width, header_.height}, ScalarType::u16, bits);
    const std::size_t pixels =
        static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(header_.height);
    unpack(bytes.data(), bits, pixels, image.row<std::uint16_t>(0));
    return image;
  }

  /// Rows are stored from the bottom up, packed ones from the top down; and the user may have turned the
  /// view.
  Image turned(Image image) const {
    const bool is_upside_down = (header_.packing == Packing::whole) != header_.flip_up;
    constexpr Orientation kMirrored = 2, kUpsideDown = 4;
    if (is_upside_down) image = oriented(std::move(image), kUpsideDown);
    return header_.flip_across ? oriented(std::move(image), kMirrored) : image;
  }

  RawFile file_;
  CineHeader header_;
  std::vector<std::uint64_t> offsets_;
  std::vector<double> times_;  ///< s from the first frame; empty = unknown
};

}  // namespace

std::unique_ptr<FrameFile> open_cine(const std::filesystem::path& path) {
  return std::make_unique<Cine>(path);
}

}  // namespace dic::image

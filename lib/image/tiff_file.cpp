#include "image/tiff_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>

#include "image/codecs.hpp"

namespace dic::image {
namespace {

/// Ignores errors, which return values also show. Without this handler libtiff would write to stderr.
int ignore_message(TIFF*, void*, const char*, const char*, va_list) { return 1; }

int note_warning(TIFF*, void* warned, const char*, const char*, va_list) {
  *static_cast<bool*>(warned) = true;
  return 1;
}

tmsize_t refuse_to_write(thandle_t, void*, tmsize_t) { return -1; }

/// The properties that decide whether a page is a picture.
struct PageKind {
  TiffPage page;
  std::uint32_t width = 0, height = 0;
  bool is_copy = false;  ///< a reduced copy of another page, or a transparency mask
};

PageKind kind_of_page(TIFF* tiff) {
  PageKind kind;
  kind.page.directory = TIFFCurrentDirOffset(tiff);
  kind.width = tiff_tag(tiff, TIFFTAG_IMAGEWIDTH, 0u);
  kind.height = tiff_tag(tiff, TIFFTAG_IMAGELENGTH, 0u);
  const auto type = tiff_tag(tiff, TIFFTAG_SUBFILETYPE, 0u);
  std::uint16_t old_type = 0;  // this tag has no default
  TIFFGetField(tiff, TIFFTAG_OSUBFILETYPE, &old_type);
  kind.is_copy = (type & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0 || old_type == OFILETYPE_REDUCEDIMAGE;
  return kind;
}

/// Offsets of the directories below the current page.
std::vector<std::uint64_t> below(TIFF* tiff) {
  std::uint16_t count = 0;
  const std::uint64_t* offsets = nullptr;
  if (!TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &offsets)) return {};
  return {offsets, offsets + count};
}

/// All pages of the main sequence, and the directories below each.
struct Sequence {
  std::vector<PageKind> pages;
  std::vector<std::vector<std::uint64_t>> below;
};

Sequence sequence_of(TIFF* tiff) {
  Sequence sequence;
  do {
    sequence.pages.push_back(kind_of_page(tiff));
    sequence.below.push_back(below(tiff));
    if (TIFFLastDirectory(tiff)) return sequence;
  } while (TIFFReadDirectory(tiff));
  throw damaged("TIFF", "the page behind page " + std::to_string(sequence.pages.size()) + " cannot be read");
}

/// The full pictures below pages that are reduced copies, as raw photographs store them.
std::vector<PageKind> pictures_below(TiffFile& file, const Sequence& sequence) {
  std::vector<PageKind> found;
  for (std::size_t i = 0; i < sequence.pages.size(); ++i) {
    if (!sequence.pages[i].is_copy) continue;
    for (const std::uint64_t offset : sequence.below[i]) {
      file.go_to({offset, 0});
      found.push_back(kind_of_page(file.tiff()));
    }
  }
  return found;
}

bool is_smaller(const PageKind& a, const PageKind& b) {
  return std::uint64_t{a.width} * a.height < std::uint64_t{b.width} * b.height;
}

/// Removes pages of at most half the size of the largest: thumbnails and reduced copies without their mark.
void remove_small_pages(std::vector<PageKind>& pages) {
  if (pages.empty()) return;
  const PageKind largest = *std::ranges::max_element(pages, is_smaller);
  std::erase_if(pages, [&](const PageKind& page) {
    return page.width <= largest.width / 2 && page.height <= largest.height / 2;
  });
}

/// The whole number behind `key` in a text; none if there is none.
std::optional<std::uint64_t> number_behind(const std::string& text, std::string_view key) {
  const std::size_t at = text.find(key);
  unsigned long long number = 0;
  if (at == std::string::npos || std::sscanf(text.c_str() + at + key.size(), "%llu", &number) != 1) return {};
  return number;
}

/// Extents of a stack beyond the picture itself, as programs for microscopy note them.
struct Axes {
  std::uint64_t channels = 1, slices = 1, frames = 1;
};

Axes axes_of(const std::string& description) {
  const auto axis = [&](const char* key) { return number_behind(description, key).value_or(1); };
  if (description.starts_with("ImageJ=")) return {axis("\nchannels="), axis("\nslices="), axis("\nframes=")};
  if (description.find("<OME ") == std::string::npos) return {};
  return {axis(" SizeC=\""), axis(" SizeZ=\""), axis(" SizeT=\"")};
}

/// Refuses stacks that are more than one sequence, of channels and times for example. A single extent counts
/// as time, whatever it is called: tifffile names the pages of an array [page, y, x] channels.
void check_axes(const std::string& description, std::uint64_t pages) {
  const auto [channels, slices, frames] = axes_of(description);
  if (pages < 2 || channels * slices * frames != pages) return;
  if ((channels > 1) + (slices > 1) + (frames > 1) > 1)
    throw Refusal("is a stack of " + std::to_string(channels) + " channels, " + std::to_string(slices) +
                  " slices and " + std::to_string(frames) +
                  " frames, which are not one sequence; save one channel and one slice as a stack.");
}

/// The number of pages that share one directory: in the description by ImageJ ("images=12") or by tifffile
/// ({"shape": [12, 200, 256]}); 1 if it says nothing.
std::uint64_t shared_pages(const std::string& description, std::uint64_t samples) {
  constexpr std::uint64_t kMost = 1 << 24;
  if (description.starts_with("ImageJ="))
    return std::min(number_behind(description, "\nimages=").value_or(1), kMost);
  constexpr std::string_view kShape = "{\"shape\": [";
  if (!description.starts_with(kShape)) return 1;
  double product = 1;
  for (std::size_t at = kShape.size(); at < description.size() && description[at] != ']';) {
    unsigned long long number = 0;
    int length = 0;
    if (std::sscanf(description.c_str() + at, "%llu%n", &number, &length) != 1) return 1;
    product *= static_cast<double>(number);
    at = description.find_first_not_of(", ", at + static_cast<std::size_t>(length));
  }
  const double pages = product / static_cast<double>(samples);
  return pages >= 1 && pages <= kMost ? static_cast<std::uint64_t>(pages) : 1;
}

/// The pages of a file with one directory, of which more may follow without a directory of their own.
std::vector<TiffPage> pages_of_one_directory(TiffFile& file, const TiffPage& page) {
  TIFF* tiff = file.tiff();
  file.go_to(page);
  const auto samples = tiff_tag(tiff, TIFFTAG_SAMPLESPERPIXEL, std::uint16_t{1});
  const std::uint64_t pixels =
      std::uint64_t{tiff_tag(tiff, TIFFTAG_IMAGEWIDTH, 0u)} * tiff_tag(tiff, TIFFTAG_IMAGELENGTH, 0u);
  const std::string description = tiff_text(tiff, TIFFTAG_IMAGEDESCRIPTION);
  const std::uint64_t count = shared_pages(description, pixels * samples);
  const std::uint64_t bytes = pixels * samples * tiff_tag(tiff, TIFFTAG_BITSPERSAMPLE, std::uint16_t{1}) / 8;
  const bool is_plain =
      tiff_tag(tiff, TIFFTAG_COMPRESSION, std::uint16_t{COMPRESSION_NONE}) == COMPRESSION_NONE &&
      !TIFFIsTiled(tiff);
  if (count < 2 || bytes == 0 || !is_plain) return {page};
  check_axes(description, count);
  const std::uint64_t begin = TIFFGetStrileOffset(tiff, 0);
  if (begin > file.size() || count > (file.size() - begin) / bytes)
    throw damaged("TIFF", "it has not the " + std::to_string(count) + " pages that its description names");
  std::vector<TiffPage> pages;
  for (std::uint64_t i = 0; i < count; ++i) pages.push_back({page.directory, i * bytes});
  return pages;
}

}  // namespace

TiffFile::TiffFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) throw cannot_be_read(errno);
  size_ = static_cast<std::uint64_t>(status.st_size);
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), ignore_message, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_warning, &warned_);
  const auto stays_open = [](thandle_t) { return 0; };  // the destructor closes it
  const auto size = [](thandle_t handle) -> toff_t { return static_cast<TiffFile*>(handle)->size_; };
  tiff_.reset(TIFFClientOpenExt(path.c_str(), "rm", this, read, refuse_to_write, seek, stays_open, size,
                                nullptr, nullptr, options.get()));
  if (tiff_) return;
  ::close(file_);
  throw damaged("TIFF", "its directory cannot be read");
}

TiffFile::~TiffFile() {
  tiff_.reset();
  ::close(file_);
}

tmsize_t TiffFile::read(thandle_t handle, void* bytes, tmsize_t size) {
  auto* file = static_cast<TiffFile*>(handle);
  const auto at = static_cast<off_t>(file->position_ + file->shift_);
  tmsize_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file->file_, static_cast<char*>(bytes) + done,
                                static_cast<std::size_t>(size - done), at + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += got;
  }
  file->position_ += static_cast<std::uint64_t>(done);
  return done;
}

toff_t TiffFile::seek(thandle_t handle, toff_t offset, int whence) {
  auto* file = static_cast<TiffFile*>(handle);
  const std::uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file->position_ : file->size_;
  return file->position_ = base + offset;
}

void TiffFile::go_to(const TiffPage& page) {
  shift_ = 0;
  if (TIFFCurrentDirOffset(tiff()) == page.directory) return;
  if (!TIFFSetSubDirectory(tiff(), page.directory))
    throw damaged("TIFF", "the directory of a page cannot be read");
}

std::string tiff_text(TIFF* tiff, std::uint32_t name) {
  const char* text = nullptr;
  return TIFFGetField(tiff, name, &text) && text ? text : "";
}

std::vector<TiffPage> tiff_pages(TiffFile& file) {
  const std::string description = tiff_text(file.tiff(), TIFFTAG_IMAGEDESCRIPTION);
  const Sequence sequence = sequence_of(file.tiff());
  std::vector<PageKind> pictures = sequence.pages;
  std::erase_if(pictures, &PageKind::is_copy);
  if (pictures.empty()) {
    pictures = pictures_below(file, sequence);
    std::erase_if(pictures, &PageKind::is_copy);
  }
  if (pictures.empty()) pictures = sequence.pages;
  remove_small_pages(pictures);
  check_axes(description, pictures.size());
  if (pictures.size() == 1) return pages_of_one_directory(file, pictures.front().page);
  std::vector<TiffPage> pages;
  for (const PageKind& picture : pictures) pages.push_back(picture.page);
  return pages;
}

}  // namespace dic::image

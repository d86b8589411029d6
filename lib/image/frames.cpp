#include <glob.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <iterator>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>

#include "image/cine.hpp"
#include "image/codecs.hpp"
#include "image/endings.hpp"
#include "image/frame_file.hpp"
#include "image/frame_order.hpp"
#include "image/mraw.hpp"
#include "image/opencv_codecs.hpp"

namespace dic {

using namespace image;

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 19> kImageEndings = {
    ".png", ".tif", ".tiff", ".dng", ".bmp", ".dib",  ".jpg", ".jpeg", ".jpe", ".gif",
    ".pgm", ".ppm", ".pnm",  ".pbm", ".jp2", ".webp", ".exr", ".hdr",  ".ras"};
/// Endings of images that may be TIFFs, and so have several pages; unknown endings may be too.
constexpr std::array<std::string_view, 3> kTiffEndings = {".tif", ".tiff", ".dng"};
/// Endings by which a folder lists recordings; the descriptions beside a .mraw are not listed.
constexpr std::array<std::string_view, 2> kRecordingEndings = {".cine", ".mraw"};
constexpr std::array<std::string_view, 2> kDescriptionEndings = {".cih", ".cihx"};
constexpr std::array<std::string_view, 12> kVideoEndings = {".avi",  ".mp4", ".m4v",  ".mov", ".mkv", ".mpg",
                                                            ".mpeg", ".wmv", ".webm", ".ogv", ".flv", ".mj2"};

bool has_ending(const fs::path& path, std::span<const std::string_view> endings) {
  return std::ranges::find(endings, lower_case_ending(path)) != endings.end();
}

void sort_naturally(std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  for (const fs::path& path : paths) names.push_back(path.string());
  const FrameOrder order(names);
  std::ranges::sort(names, [&](const std::string& a, const std::string& b) { return order.less(a, b); });
  paths.assign(names.begin(), names.end());
}

/// True for the order in which a shell lists files: by bytes, or as the user's language has it.
bool is_shell_order(const std::vector<std::string>& names) {
  if (std::ranges::is_sorted(names)) return true;
  const std::unique_ptr<std::remove_pointer_t<locale_t>, void (*)(locale_t)> locale(
      ::newlocale(LC_COLLATE_MASK, "", nullptr), ::freelocale);
  return locale && std::ranges::is_sorted(names, [&](const std::string& a, const std::string& b) {
           return ::strcoll_l(a.c_str(), b.c_str(), locale.get()) < 0;
         });
}

std::vector<fs::path> images_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    const bool is_listed = has_image_ending(entry->path()) || has_ending(entry->path(), kRecordingEndings);
    if (!hidden && is_listed && !entry->is_directory()) found.push_back(entry->path());
  }
  if (error)
    throw FileError("'" + directory.string() + "' cannot be listed (" + error.message() +
                    "); check its permissions.");
  if (found.empty())
    throw FileError("'" + directory.string() +
                    "' holds no images (.png, .tif, .bmp, .jpg, .pgm, ...); name the directory that does.");
  sort_naturally(found);
  return found;
}

std::vector<fs::path> files_matching(const std::string& pattern) {
  glob_t matches{};
  std::vector<fs::path> found;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches) == 0)
    for (std::size_t i = 0; i < matches.gl_pathc; ++i)
      if (!fs::is_directory(matches.gl_pathv[i])) found.emplace_back(matches.gl_pathv[i]);
  globfree(&matches);
  if (found.empty()) throw FileError("'" + pattern + "' matches no file; check the pattern and the folder.");
  sort_naturally(found);
  return found;
}

std::vector<fs::path> expand(const std::string& argument) {
  std::error_code error;
  const auto type = fs::status(argument, error).type();
  if (type == fs::file_type::directory) return images_in(argument);
  if (type != fs::file_type::not_found) return {argument};
  if (argument.find_first_of("*?[") != std::string::npos) return files_matching(argument);
  throw FileError("'" + argument + "' does not exist; check the name.");
}

bool may_be_tiff(const fs::path& path) { return !has_image_ending(path) || has_ending(path, kTiffEndings); }

/// The frames of a file; null for a file with one image, also for one that cannot be read: that is reported
/// when the frame is read.
std::unique_ptr<FrameFile> open_frame_file(const fs::path& path) {
  try {
    if (is_recording(path)) return open_recording(path);
  } catch (const Refusal& why) {
    throw FileError("'" + path.string() + "' " + why.what());
  }
  try {
    return may_be_tiff(path) && is_tiff(path) ? open_stack(path) : nullptr;
  } catch (const Refusal&) {
    return nullptr;
  }
}

/// The frames of files, one after the other.
class FileSource : public FrameSource {
 public:
  explicit FileSource(const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
      files_.push_back({file, open_frame_file(file), count_});
      count_ += files_.back().frames ? files_.back().frames->count() : 1;
    }
  }
  std::optional<std::int64_t> count() const override { return count_; }
  std::string name(std::int64_t i) const override {
    const File& file = at(i);
    return file.frames ? frame_name(file.path, i - file.first) : file.path.filename().string();
  }
  fs::path file(std::int64_t i) const override { return at(i).path; }
  Image read(std::int64_t i) override {
    const File& file = at(i);
    std::unique_ptr<ImageBuffers> buffers = take_buffers();
    Image image = file.frames
                      ? read_checked(file.path, [&] { return file.frames->read(i - file.first, *buffers); })
                      : read_only_frame(file.path, *buffers);
    const std::lock_guard lock(mutex_);
    free_buffers_.push_back(std::move(buffers));
    return image;
  }
  std::string stamp(std::int64_t i) const override { return file_stamp(at(i).path); }
  bool reads_in_parallel() const override { return true; }
  /// Frame rate of a single recording; several recordings have no common clock.
  std::optional<double> frames_per_second() const override {
    return files_.size() == 1 && files_[0].frames ? files_[0].frames->frames_per_second() : std::nullopt;
  }
  std::optional<double> time(std::int64_t i) const override {
    return files_.size() == 1 && files_[0].frames && i < count_ ? files_[0].frames->time(i) : std::nullopt;
  }

 private:
  struct File {
    fs::path path;
    std::unique_ptr<FrameFile> frames;  ///< null if it holds one image
    std::int64_t first = 0;             ///< index of its first frame
  };

  const File& at(std::int64_t i) const {
    if (i < 0 || i >= count_) throw std::out_of_range("There is no frame " + std::to_string(i) + ".");
    return *std::prev(std::ranges::upper_bound(files_, i, {}, &File::first));
  }

  static Image read_only_frame(const fs::path& path, ImageBuffers& buffers) {
    if (const bool may_have_more = lower_case_ending(path) == ".gif"; may_have_more && frames_in(path) > 1)
      throw FileError("'" + path.string() +
                      "' holds several frames and must be the only input; leave out the others.");
    return read_image(path, buffers);
  }

  std::unique_ptr<ImageBuffers> take_buffers() {
    const std::lock_guard lock(mutex_);
    if (free_buffers_.empty()) return std::make_unique<ImageBuffers>();
    std::unique_ptr<ImageBuffers> buffers = std::move(free_buffers_.back());
    free_buffers_.pop_back();
    return buffers;
  }

  std::vector<File> files_;
  std::int64_t count_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ImageBuffers>>
      free_buffers_;  // no more than threads that have read at the same time
};

/// The pages of a TIFF.
class Stack : public FrameFile {
 public:
  Stack(fs::path path, std::vector<TiffPage> pages) : path_(std::move(path)), pages_(std::move(pages)) {}
  std::int64_t count() const override { return std::ssize(pages_); }
  Image read(std::int64_t i, ImageBuffers& buffers) const override {
    return decode_tiff(path_, pages_.at(static_cast<std::size_t>(i)), buffers, Content::grey);
  }

 private:
  fs::path path_;
  std::vector<TiffPage> pages_;
};

std::unique_ptr<FrameSource> open_video(const fs::path& path) {
  try {
    return opencv_codecs().open_video(path);
  } catch (const Refusal& why) {
    throw FileError("'" + path.string() + "' " + why.what());
  }
}

}  // namespace

std::string image::lower_case_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

bool image::is_recording(const fs::path& path) {
  return has_ending(path, kRecordingEndings) || has_ending(path, kDescriptionEndings);
}

std::unique_ptr<FrameFile> image::open_recording(const fs::path& path) {
  return lower_case_ending(path) == ".cine" ? open_cine(path) : open_mraw(path);
}

std::unique_ptr<FrameFile> image::open_stack(const fs::path& path) {
  std::vector<TiffPage> pages = pages_of_tiff(path);
  return pages.size() > 1 ? std::make_unique<Stack>(path, std::move(pages)) : nullptr;
}

std::int64_t image::frames_in(const fs::path& path) {
  try {
    if (lower_case_ending(path) == ".gif") return open_video(path)->count().value_or(1);
    const std::unique_ptr<FrameFile> frames = open_frame_file(path);
    return frames ? frames->count() : 1;
  } catch (const FileError&) {
    return 1;
  }
}

std::string image::frame_name(const fs::path& file, std::int64_t i) {
  char number[32];
  std::snprintf(number, sizeof number, "_%06lld", static_cast<long long>(i));
  std::string name = file.stem().string();
  std::ranges::replace(name, '.', '_');
  return name + number;
}

bool image::has_image_ending(const fs::path& path) { return has_ending(path, kImageEndings); }

bool natural_less(const std::string& a, const std::string& b) { return FrameOrder().less(a, b); }

std::string file_stamp(const fs::path& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return {};
  char text[64];
  std::snprintf(text, sizeof text, "%lld %lld.%09ld", static_cast<long long>(file.st_size),
                static_cast<long long>(file.st_mtim.tv_sec), file.st_mtim.tv_nsec);
  return text;
}

std::vector<fs::path> expand_frames(const std::vector<std::string>& arguments) {
  std::vector<fs::path> frames;
  for (const auto& argument : arguments) std::ranges::move(expand(argument), std::back_inserter(frames));
  const bool plain_list =
      std::ranges::equal(frames, arguments, {}, [](const fs::path& p) { return p.string(); });
  if (plain_list && is_shell_order(arguments)) sort_naturally(frames);
  return frames;
}

bool is_video(const fs::path& path) { return has_ending(path, kVideoEndings); }

std::unique_ptr<FrameSource> open_frames(const std::vector<std::string>& arguments) {
  const auto frames = expand_frames(arguments);
  if (frames.empty())
    throw FileError("No frames were named; give files, a directory, a quoted glob or a video.");
  if (frames.size() == 1 && lower_case_ending(frames.front()) == ".gif") return open_video(frames.front());
  const auto video = std::ranges::find_if(frames, is_video);
  if (video == frames.end()) return std::make_unique<FileSource>(frames);
  if (frames.size() > 1)
    throw FileError("'" + video->string() + "' is a video and must be the only input; leave out the others.");
  return open_video(*video);
}

}  // namespace dic

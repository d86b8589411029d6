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
#include <mutex>
#include <span>
#include <string_view>

#include "image/codecs.hpp"
#include "image/endings.hpp"
#include "image/frame_order.hpp"
#include "image/opencv_codecs.hpp"

namespace dic {

using namespace image;

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 17> kImageEndings = {".png",  ".tif",  ".tiff", ".bmp", ".dib", ".jpg",
                                                            ".jpeg", ".jpe",  ".pgm",  ".ppm", ".pnm", ".pbm",
                                                            ".jp2",  ".webp", ".exr",  ".hdr", ".ras"};
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
    if (!hidden && !entry->is_directory() && has_image_ending(entry->path())) found.push_back(entry->path());
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

class FileSource : public FrameSource {
 public:
  explicit FileSource(std::vector<fs::path> files) : files_(std::move(files)) {}
  std::optional<std::int64_t> count() const override { return std::ssize(files_); }
  std::string name(std::int64_t i) const override { return files_.at(i).filename().string(); }
  Image read(std::int64_t i) override {
    std::unique_ptr<ImageBuffers> buffers = take_buffers();
    Image image = read_image(files_.at(i), *buffers);
    const std::lock_guard lock(mutex_);
    free_buffers_.push_back(std::move(buffers));
    return image;
  }
  std::string stamp(std::int64_t i) const override { return file_stamp(files_.at(i)); }
  bool reads_in_parallel() const override { return true; }

 private:
  std::unique_ptr<ImageBuffers> take_buffers() {
    const std::lock_guard lock(mutex_);
    if (free_buffers_.empty()) return std::make_unique<ImageBuffers>();
    std::unique_ptr<ImageBuffers> buffers = std::move(free_buffers_.back());
    free_buffers_.pop_back();
    return buffers;
  }

  std::vector<fs::path> files_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ImageBuffers>>
      free_buffers_;  // no more than threads that have read at the same time
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
  auto frames = expand_frames(arguments);
  if (frames.empty())
    throw FileError("No frames were named; give files, a directory, a quoted glob or a video.");
  const auto video = std::ranges::find_if(frames, is_video);
  if (video == frames.end()) return std::make_unique<FileSource>(std::move(frames));
  if (frames.size() > 1)
    throw FileError("'" + video->string() + "' is a video and must be the only input; leave out the others.");
  return open_video(*video);
}

}  // namespace dic

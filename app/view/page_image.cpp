#include "view/page_image.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <dic/error.hpp>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

namespace dic::app {
namespace {

template <typename T>
std::vector<T> reduced_values(ImageView image, const PageImage& page) {
  std::vector<T> values(static_cast<std::size_t>(page.width) * page.height);
  const int n = page.reduced, columns = std::min(n, image.width), rows = std::min(n, image.height);
  for (int y = 0; y < page.height; ++y)
    for (int x = 0; x < page.width; ++x) {
      double sum = 0;
      for (int j = 0; j < rows; ++j)
        for (int i = 0; i < columns; ++i) sum += image.row<T>(y * n + j)[x * n + i];
      const double mean = sum / (columns * rows);
      values[static_cast<std::size_t>(y) * page.width + x] =
          static_cast<T>(std::is_floating_point_v<T> ? mean : std::round(mean));
    }
  return values;
}

/// Reads size and type of an image only. An image that is narrower than `reduced` px keeps one column.
PageImage described(ImageView image, int longest) {
  PageImage page;
  page.reduced = (std::max(image.width, image.height) + longest - 1) / longest;
  page.width = std::max(image.width / page.reduced, 1);
  page.height = std::max(image.height / page.reduced, 1);
  page.type = image.type;
  return page;
}

template <typename T>
std::string stretched(const std::vector<T>& values) {
  std::vector<T> sample;
  const std::size_t stride = values.size() / 100'000 + 1;
  for (std::size_t i = 0; i < values.size(); i += stride) sample.push_back(values[i]);
  std::ranges::sort(sample);
  const auto at = [&](double share) {
    return static_cast<double>(sample[static_cast<std::size_t>(share * (sample.size() - 1))]);
  };
  const double low = std::is_same_v<T, std::uint8_t> ? 0 : at(0.005);
  const double high =
      std::is_same_v<T, std::uint8_t> ? 255 : std::max(at(0.995), std::nextafter(low, HUGE_VAL));
  std::string bytes(values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i)
    bytes[i] = static_cast<char>(static_cast<std::uint8_t>(
        std::lround(std::clamp(255 * (values[i] - low) / (high - low), 0.0, 255.0))));
  return bytes;
}

}  // namespace

PageImage page_image(ImageView image, int longest) {
  PageImage page = described(image, longest);
  visit_scalar(image.type, [&](auto element) {
    const auto values = reduced_values<decltype(element)>(image, page);
    page.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof element);
  });
  return page;
}

PageImage page_image_8bit(ImageView image, int longest) {
  PageImage page = described(image, longest);
  visit_scalar(image.type,
               [&](auto element) { page.bytes = stretched(reduced_values<decltype(element)>(image, page)); });
  page.type = ScalarType::u8;
  return page;
}

/// Frames of a video in any order: it is decoded from its begin again where an earlier frame is wanted. The
/// last ones are kept, for who steps back.
struct NamedImages::Video {
  static constexpr int kKept = 32;

  std::vector<std::string> arguments;
  std::mutex mutex;  ///< guards all members below
  std::unique_ptr<FrameSource> decoder;
  int next = 0;  ///< the first one that the decoder can still read
  std::deque<std::pair<int, Image>> kept;
  std::optional<int> counted;

  explicit Video(std::vector<std::string> of) : arguments(std::move(of)) {}

  /// Number of frames of a video that does not store it: the first call decodes all of it.
  int length() {
    const std::lock_guard lock(mutex);
    if (counted) return *counted;
    const std::unique_ptr<FrameSource> all = open_frames(arguments);
    int frames = 0;
    try {
      for (;; ++frames) read_or_skip(*all, frames);
    } catch (const std::out_of_range&) {
      counted = frames;
    }
    return frames;
  }

  static void read_or_skip(FrameSource& source, int index) {
    try {
      source.read(index);
    } catch (const FileError&) {
      return;  // it counts nevertheless
    }
  }

  Image read(int index) {
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find(kept, index, &std::pair<int, Image>::first);
    if (found != kept.end()) return copy_of(found->second);
    if (!decoder || index < next) {
      decoder = open_frames(arguments);
      next = 0;
    }
    for (next = std::max(next, index - kKept + 1); next < index; ++next) {
      try {
        keep(next);
      } catch (const FileError&) {
        continue;  // nobody asked for that one
      }
    }
    keep(next++);
    return copy_of(kept.back().second);
  }

  void keep(int index) {
    kept.emplace_back(index, decoder->read(index));
    if (kept.size() > kKept) kept.pop_front();
  }
};

NamedImages::NamedImages(const std::vector<std::string>& arguments) : source_(open_frames(arguments)) {
  if (!source_->reads_in_parallel()) video_ = std::make_shared<Video>(arguments);
}

int NamedImages::count() const {
  if (!source_) return 0;
  return static_cast<int>(source_->count().value_or(video_ ? video_->length() : 1));
}

std::optional<int> NamedImages::find(const std::string& name) const {
  for (int i = 0; i < count(); ++i)
    if (source_->name(i) == name) return i;
  return std::nullopt;
}

Image NamedImages::read(int index) const {
  if (index < 0 || index >= count()) throw FileError("There is no frame " + std::to_string(index) + ".");
  return video_ ? video_->read(index) : source_->read(index);
}

}  // namespace dic::app

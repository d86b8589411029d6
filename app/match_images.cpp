#include "match_images.hpp"

#include <algorithm>
#include <stdexcept>

namespace dic::app {

MatchImages::MatchImages(const std::vector<std::string>& arguments) : files_(expand_frames(arguments)) {
  if (std::ranges::any_of(files_, is_video)) video_ = open_frames(arguments);
}

std::optional<std::int64_t> MatchImages::count() const {
  return video_ ? video_->count() : std::ssize(files_);
}

std::string MatchImages::name(std::int64_t i) const { return video_ ? video_->name(i) : files_[i].string(); }

std::optional<Image> MatchImages::read(std::int64_t i) {
  if (!video_) return i < std::ssize(files_) ? std::optional(read_image(files_[i])) : std::nullopt;
  try {
    return video_->read(i);
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

}  // namespace dic::app

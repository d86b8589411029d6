#include "match_images.hpp"

#include <stdexcept>

namespace dic::app {

MatchImages::MatchImages(const std::vector<std::string>& arguments)
    : files_(expand_frames(arguments)), source_(open_frames(arguments)) {}

std::string MatchImages::name(std::int64_t i) const {
  const bool is_whole_file = source_->reads_in_parallel() && source_->file(i).filename() == source_->name(i);
  return is_whole_file ? source_->file(i).string() : source_->name(i);
}

std::optional<Image> MatchImages::read(std::int64_t i) {
  try {
    return source_->read(i);
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

}  // namespace dic::app

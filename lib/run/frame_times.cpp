#include "run/frame_times.hpp"

#include <dic/error.hpp>
#include <fstream>
#include <string>

#include "core/number_text.hpp"

namespace dic::run {

std::vector<double> read_times(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream)
    throw FileError("The times " + file.string() + " cannot be read: check its name and permissions.");
  std::vector<double> times;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::string word = line.substr(begin, line.find_first_of(",; \t\r", begin) - begin);
    if (const auto time = core::parse_number<double>(word))
      times.push_back(*time);
    else if (!times.empty())
      throw FileError("The times " + file.string() + " cannot be used: line " + std::to_string(number) +
                      " begins with \"" + word.substr(0, 40) + "\", not with a number of seconds.");
  }
  if (times.empty())
    throw FileError("The times " + file.string() + " cannot be used: no line begins with a number.");
  return times;
}

FrameTimes::FrameTimes(const TrackJob& job, const FrameSource& source)
    : fps_(job.fps), times_(job.times), source_(job.fps > 0 || !job.times.empty() ? nullptr : &source) {
  if (source_) fps_ = source.frames_per_second().value_or(0);
  const auto count = source.count();
  if (!times_.empty() && count && *count != std::ssize(times_))
    throw UsageError("There are " + std::to_string(times_.size()) + " times for " + std::to_string(*count) +
                     " frames: give one for each of FRAMES, with the reference if it is one of them.");
}

std::optional<double> FrameTimes::at(std::int64_t i) const {
  if (!times_.empty()) return i < std::ssize(times_) ? std::optional(times_[i]) : std::nullopt;
  if (source_ && source_->time(0)) return source_->time(i);
  return fps_ > 0 ? std::optional(static_cast<double>(i) / fps_) : std::nullopt;
}

}  // namespace dic::run

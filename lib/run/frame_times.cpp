#include "run/frame_times.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <functional>
#include <string>

#include "io/text_table.hpp"

namespace dic::run {

namespace {

std::size_t column_of_times(const io::TextTable& table) {
  const auto& headings = table.headings();
  if (headings.size() < 2) {
    if (!headings.empty() && headings[0].quantity != io::Quantity::time && !headings[0].unit.empty())
      table.fail("has no column of times, but \"" + headings[0].text + '"');
    return 0;
  }
  if (const auto column = table.find_time()) return *column;
  table.fail("has no column of times: name it, as \"time [s]\"; its columns are " + table.list_of_headings());
}

}  // namespace

std::vector<double> read_times(const std::filesystem::path& file) {
  io::TextTable table(file, "time");
  if (table.may_have_decimal_commas()) {
    const bool are_columns = table.first_cells_increase();
    const std::vector<double> first_cells = table.seconds(0);
    table.join_cells();
    const std::vector<double> numbers = table.seconds(0);
    const bool are_numbers =
        std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
    if (are_columns && are_numbers && first_cells != numbers)
      table.fail(
          "has lines as \"0,5\", which may be one time or a time and another number: write decimal points, "
          "or "
          "a line of names above");
    return are_columns ? first_cells : numbers;
  }
  return table.seconds(column_of_times(table));
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

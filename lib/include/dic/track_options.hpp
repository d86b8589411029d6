#pragma once

#include <dic/export.hpp>
#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/track_files.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dic {

/// How the value of an option is written.
enum class OptionKind : std::uint8_t {
  flag,      ///< "true" or "false"
  integer,   ///< a whole number, or one of `choices`
  number,    ///< a finite number, or one of `choices`
  choice,    ///< one of `choices`
  text,      ///< anything
  file,      ///< the name of a file that exists
  rect,      ///< "x,y,width,height", whole numbers
  polygons,  ///< corners "x,y x,y ...", polygons separated by ";"
};
template <>
struct EnumNames<OptionKind> {
  static constexpr EnumName<OptionKind> table[] = {
      {OptionKind::flag, "flag"},     {OptionKind::integer, "integer"},  {OptionKind::number, "number"},
      {OptionKind::choice, "choice"}, {OptionKind::text, "text"},        {OptionKind::file, "file"},
      {OptionKind::rect, "rect"},     {OptionKind::polygons, "polygons"}};
};

/// How widely an option is used: help texts show the common ones first and the advanced ones last.
enum class OptionLevel : std::uint8_t {
  common,    ///< needed for a first measurement
  usual,     ///< other options that users choose
  advanced,  ///< limits and parts of the algorithm that few need to change
  hidden     ///< an older name that is understood but not shown
};

/// One option of a run, as the command line, its configuration files and other languages offer it.
struct TrackOption {
  std::string name = {};   ///< "strain-window": --strain-window, the key in TOML, strain_window in Python
  std::string group = {};  ///< "Input", "Measurement", "Output", "Running"
  OptionLevel level = OptionLevel::usual;
  OptionKind kind = OptionKind::text;
  std::string placeholder = {};  ///< name of the value in help texts: "PX"; empty for flags and choices
  std::vector<std::string> choices = {};  ///< words that are accepted as values: "auto", "green-lagrange"
  std::string help = {};                  ///< description in one line
  /// Sets the value in a job. Throws UsageError, whose message is a sentence without full stop that begins
  /// with the name, and FileError for a file that cannot be read. Checks this value alone; TrackJob::validate
  /// checks all values together.
  std::function<void(TrackJob&, const std::string& value)> set = {};
  /// Returns the value as `set` accepts it; empty if there is none. The value in TrackJob{} is the default.
  std::function<std::string(const TrackJob&)> get = {};
};

/// All options of a run, in the order of help texts. Frames are not among them.
DIC_API const std::vector<TrackOption>& track_options();

/// The option of this name. Throws UsageError if there is none.
DIC_API const TrackOption& track_option(std::string_view name);

}  // namespace dic

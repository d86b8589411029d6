#pragma once

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

/// Who needs an option: help texts show the common ones first and the advanced ones last.
enum class OptionLevel : std::uint8_t {
  common,    ///< what a first measurement needs
  usual,     ///< the rest of what users choose
  advanced,  ///< limits and parts of the algorithm that few need to change
  hidden     ///< an older name that is understood but not shown
};

/// One option of a run, as the command line, its configuration files and other languages offer it.
struct TrackOption {
  std::string name = {};   ///< "strain-window": --strain-window, the key in TOML, strain_window in Python
  std::string group = {};  ///< "Input", "Measurement", "Output", "Running"
  OptionLevel level = OptionLevel::usual;
  OptionKind kind = OptionKind::text;
  std::string placeholder = {};  ///< of the value in a help text: "PX", "FILE"; empty for flags and choices
  std::vector<std::string> choices = {};  ///< words that are values: "auto", "green-lagrange"
  std::string help = {};                  ///< one line
  /// Throws UsageError: a sentence without full stop that begins with the name. Throws FileError for a file
  /// that cannot be read. Only one value is judged here; TrackJob::validate judges all together.
  std::function<void(TrackJob&, const std::string& value)> set = {};
  /// The value as `set` takes it; empty where there is none. That of TrackJob{} is the default.
  std::function<std::string(const TrackJob&)> get = {};
};

/// All options of a run, in the order of a help text. Frames are none of them.
const std::vector<TrackOption>& track_options();

/// The option of this name. Throws UsageError where there is none.
const TrackOption& track_option(std::string_view name);

}  // namespace dic

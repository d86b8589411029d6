#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <dic/track.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The commands of `dic`. Each adds its subcommand with flags and a callback that makes one library call and
/// prints the answer. A callback ends the program with another exit code than 0 by throwing
/// CLI::RuntimeError(code).
namespace dic::app {

/// Exit codes, as users' scripts know them. An exception decides between `failed` and `wrong_usage`.
enum ExitCode { done = 0, failed = 1, wrong_usage = 2, frames_lost = 3, interrupted = 130, output_gone = 141 };

void add_track(CLI::App& app);
void add_watch(CLI::App& app);
void add_stereo(CLI::App& app);
void add_live(CLI::App& app);
void add_plot(CLI::App& app);
void add_match(CLI::App& app);
void add_synth(CLI::App& app);
void add_validate(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_vsg(CLI::App& app);
void add_strain(CLI::App& app);
void add_probe(CLI::App& app);
void add_export(CLI::App& app);
void add_view(CLI::App& app);
void add_report(CLI::App& app);
void add_bench(CLI::App& app);
void add_info(CLI::App& app);
void add_help(CLI::App& app);

/// Adds the options of a measurement and of the device as `dic track` has them. Returns a function that gives
/// their values after the command line was parsed.
std::function<TrackOptions()> add_track_options(CLI::App& command);

/// The command as typed, quoted for a shell. Result files state it as their origin.
const std::string& command_line();

/// Path of a page of docs/: in the installation that the program belongs to or, without an installation, in
/// the source tree ("docs/user-guide.md").
std::string guide(const std::string& page);

/// Throws UsageError if `output`, which `option` names, is one of the files that are read.
void refuse_input(const std::string& option, const std::filesystem::path& output,
                  const std::vector<std::filesystem::path>& inputs);

/// True for result.vtkhdf and for a folder that contains it.
bool is_result(const std::filesystem::path& path);

/// The text with control characters, which names of files may have and terminals obey, as "\n", "\x1b". A
/// message is one line.
std::string printable(const std::string& text);

/// The bytes of a file. Throws FileError.
std::string read_text(const std::string& file);

/// Adds an option whose values are the names of an enum, or some of them.
template <typename Enum>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Enum& target,
                        const std::string& description,
                        const std::vector<std::string>& names = names_of<Enum>()) {
  const auto set = [&target](const std::string& text) { target = *from_name<Enum>(text); };
  return command.add_option_function<std::string>(name, set, description)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(to_string(target)));
}

/// Adds an option that takes a number of at least 0, or "auto" for none.
template <typename Number>
CLI::Option* add_number_or_auto(CLI::App& command, const std::string& name, const std::string& unit,
                                std::optional<Number>& target, const std::string& description) {
  const auto check = [](const std::string& text) {
    Number value = 0;
    if (text == "auto" || (CLI::detail::lexical_cast(text, value) && value >= 0)) return std::string();
    return "needs auto or a number of at least 0, got \"" + text + "\"";
  };
  const auto set = [&target](const std::string& text) {
    Number value = 0;
    target.reset();
    if (text != "auto" && CLI::detail::lexical_cast(text, value)) target = value;
  };
  return command.add_option_function<std::string>(name, set, description)
      ->check(check)
      ->type_name(unit + "|auto")
      ->default_str("auto");
}

}  // namespace dic::app

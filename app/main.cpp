#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dic/error.hpp>
#include <dic/info.hpp>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "commands.hpp"
#include "help/help_format.hpp"
#include "help/suggestion.hpp"
#include "interruption.hpp"

namespace {

using namespace dic::app;

std::string typed;  // value of command_line()

std::string quoted(const std::string& argument) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Functions that add the commands, in the order of the help.
constexpr auto kCommands = {add_track, add_stereo,    add_watch,    add_live,   add_view,  add_report,
                            add_plot,  add_strain,    add_probe,    add_export, add_match, add_vsg,
                            add_synth, add_calibrate, add_validate, add_bench,  add_info,  add_help};

constexpr const char* kMainExamples =
    "Examples:\n"
    "  dic track frames/*.png                   displacement and strain fields of a sequence, into dic_out/\n"
    "  dic view frames/*.png                    the same in the browser, with the mouse\n"
    "  dic match template.png image.png         position of a template, to a fraction of a pixel\n"
    "\n"
    "dic help COMMAND lists the options of a command. The guide is ";

int fail(const std::string& message, ExitCode code) {
  std::cerr << "dic: " << printable(message) << '\n';
  return code;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Options of a command with their dashes.
std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// Suggestion for the command's own command, if that was typed wrongly, or else for the first option that it
/// does not have; empty if it has them all.
std::string suggested_word(const CLI::App& command, const std::vector<std::string>& arguments) {
  if (arguments.size() > 1 && !arguments[1].starts_with('-') && !names_of_commands(command).empty())
    return suggestion(arguments[1], names_of_commands(command));
  const std::vector<std::string> names = names_of_options(command);
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.starts_with("--") && std::ranges::find(names, name) == names.end())
      return suggestion(name, names);
  }
  return {};
}

int explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const std::string choice = "choose one of " + joined(names_of_commands(app));
  if (arguments.empty()) return fail("No command was given: " + choice + ", or see dic --help.", wrong_usage);
  const std::string& first = arguments.front();
  const auto found = app.get_subcommands([&](const CLI::App* c) { return c->get_name() == first; });
  if (found.empty() && !first.starts_with('-'))
    return fail("\"" + first + "\" is not a command" + suggestion(first, names_of_commands(app)) + ": " +
                    choice + ".",
                wrong_usage);
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::string hint = is_extra && !found.empty() ? suggested_word(*found.front(), arguments) : "";
  return fail(
      std::string(error.what()) + hint + "; see dic " + (found.empty() ? "" : first + " ") + "--help.",
      wrong_usage);
}

/// Files that are opened later must not get the numbers of closed standard streams: what a library prints
/// would land in them. A closed stdout stays unwritable, so that lost text is noticed.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0)
      std::_Exit(failed);
}

/// The exit code, or `failed` if printed text was lost: on a full disk, for example.
int after_printing(int code) {
  std::cout.flush();
  if (Interruption::output_is_gone()) return output_gone;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  return fail(
      "What was to be printed could not be written: free some space where it goes, or print elsewhere.",
      code == done ? failed : static_cast<ExitCode>(code));
}

/// Accepts finite decimal numbers, removes leading zeros, and returns an error message for all others.
std::string decimal(std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return "needs a number, got \"" + text + "\"";
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const std::size_t first = std::min(text.find_first_not_of('0', digits), text.size());
  const bool is_zero = first == text.size() || text.find_first_of("0123456789", first) != first;
  text.erase(digits, first - digits - (is_zero && first > digits ? 1 : 0));
  return {};
}

/// Checks numbers before CLI11 reads them, which takes an empty text as 0, 033 as octal, and inf.
void read_numbers_strictly(CLI::App& command) {
  for (CLI::Option* option : command.get_options())
    for (const char* type : {"INT", "UINT", "FLOAT"})
      if (option->get_expected_max() > 0 && option->get_type_name().starts_with(type))
        option->transform(CLI::Validator(decimal, ""));
  for (CLI::App* each : command.get_subcommands({})) read_numbers_strictly(*each);
}

int run(int argc, char** argv) {
  typed = "dic";
  for (int i = 1; i < argc; ++i) typed += " " + quoted(argv[i]);
  CLI::App app("Measures how things move and deform, from images.", "dic");
  app.formatter(std::make_shared<HelpFormat>());  // first: commands inherit it
  app.set_version_flag("--version", "dic " + dic::version());
  app.require_subcommand(1);
  for (const auto add : kCommands) add(app);
  read_numbers_strictly(app);
  app.footer(kMainExamples + dic::app::guide("user-guide.md") + ".");  // last: commands would inherit it
  try {
    app.parse(argc, argv);
    return done;
  } catch (const CLI::RuntimeError& e) {  // exit code that a command chose
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    // Help and version arrive here too.
    if (e.get_exit_code() == 0) return app.exit(e);
    return explain(app, e, {argv + 1, argv + argc});
  }
}

}  // namespace

const std::string& dic::app::command_line() { return typed; }

int main(int argc, char** argv) {
  H5dont_atexit();  // at exit, HDF5 would print errors about a file that a full disk left open
  open_closed_streams();
  // A file that reaches the size limit is then a failed write with a message, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_DFL);  // ignored by some parents; then `dic validate | head` would go on
  try {
    return after_printing(run(argc, argv));
  } catch (const dic::UsageError& e) {
    return fail(e.what(), wrong_usage);
  } catch (const dic::Cancelled& e) {
    return Interruption::output_is_gone() ? output_gone : fail(e.what(), interrupted);
  } catch (const dic::Error& e) {
    return fail(e.what(), failed);
  } catch (const std::bad_alloc&) {
    return fail(
        "Not enough memory: use smaller images or, to measure fields, a larger --step or a smaller region.",
        failed);
  } catch (const std::system_error& e) {
    const bool is_thread = e.code() == std::errc::resource_unavailable_try_again;
    return fail(is_thread ? "The system starts no more threads: use a smaller --threads, or raise its limits."
                          : std::string("The system refuses (") + e.what() + "): check names and limits.",
                failed);
  } catch (const std::exception& e) {
    return fail(std::string("Unexpected failure (") + e.what() + "); please report it with the command.",
                failed);
  }
}

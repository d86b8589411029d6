#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <csignal>
#include <dic/error.hpp>
#include <dic/info.hpp>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "commands.hpp"

namespace {

using namespace dic::app;

std::string typed;  // see command_line()

std::string quoted(const std::string& argument) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

constexpr auto kCommands = {add_track, add_plot,      add_strain,   add_match, add_vsg,
                            add_synth, add_calibrate, add_validate, add_bench, add_info};

constexpr const char* kExamples =
    "Examples:\n"
    "  dic track frames/*.png                   displacement and strain fields of a sequence, into dic_out/\n"
    "  dic match template.png image.png         where the template is, to a fraction of a pixel\n"
    "\n"
    "dic COMMAND --help lists the options of a command. The guide is ";

int fail(const std::string& message, ExitCode code) {
  std::cerr << "dic: " << message << '\n';
  return code;
}

/// Names of all commands: "track, match, ...".
std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

int explain(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const std::string choice = "choose one of " + command_names(app);
  if (arguments.empty()) return fail("No command was given: " + choice + ", or see dic --help.", wrong_usage);
  const std::string& first = arguments.front();
  const bool known = !app.get_subcommands([&](const CLI::App* c) { return c->get_name() == first; }).empty();
  if (!known && !first.starts_with('-'))
    return fail("\"" + first + "\" is not a command: " + choice + ".", wrong_usage);
  return fail(std::string(error.what()) + "; see dic " + (known ? first + " " : "") + "--help.", wrong_usage);
}

int run(int argc, char** argv) {
  typed = "dic";
  for (int i = 1; i < argc; ++i) typed += " " + quoted(argv[i]);
  CLI::App app("Measures how things move and deform, from images.", "dic");
  app.set_version_flag("--version", "dic " + dic::version());
  app.require_subcommand(1);
  for (const auto add : kCommands) add(app);
  app.footer(kExamples + dic::app::guide("user-guide.md") + ".");  // last: commands would inherit it
  try {
    app.parse(argc, argv);
    return done;
  } catch (const CLI::RuntimeError& e) {  // how a command names its exit code
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
#ifdef M_MMAP_THRESHOLD
  // Large buffers go back to the system when they are freed; by itself, glibc would raise the limit and keep
  // them.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
  // A file that reaches the size limit is then a failed write with a message, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const dic::UsageError& e) {
    return fail(e.what(), wrong_usage);
  } catch (const dic::Cancelled& e) {
    return fail(e.what(), interrupted);
  } catch (const dic::Error& e) {
    return fail(e.what(), failed);
  } catch (const std::bad_alloc&) {
    return fail("Not enough memory: use a larger --step or a smaller region of interest.", failed);
  } catch (const std::exception& e) {
    return fail(std::string("Unexpected failure (") + e.what() + "); please report it with the command.",
                failed);
  }
}

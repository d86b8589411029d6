#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <dic/error.hpp>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "interruption.hpp"
#include "view/server.hpp"
#include "view/session.hpp"

extern char** environ;

namespace dic::app {
namespace {

constexpr const char* kViewExamples =
    "Examples:\n"
    "  dic view                         choose frames, a video or a result in this folder\n"
    "  dic view frames/*.png            draw a region, preview, measure, look at the fields\n"
    "  dic view dic_out                 look at a result\n"
    "  dic view dic_out frames          the same, with images that have moved\n"
    "\n";

struct ViewFlags {
  std::vector<std::string> inputs;
  std::string config, output = TrackJob{}.output.string(), title;
  bool no_browser = false;
};

/// Starts the user's default browser without waiting for it, because it may run as long as this program.
bool open_browser(const std::string& address) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);  // unblocks the signals that Interruption blocks and that a child would inherit
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_WRONLY, 0);
  std::string program = "xdg-open", argument = address;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const bool started = posix_spawnp(&child, "xdg-open", &files, &attributes, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return started;
}

void run_view(const ViewFlags& flags) {
  const Interruption interruption;  // created before the threads of the server, which inherit blocked signals
  ViewInput input;
  input.command = command_line();
  input.output = flags.output;
  input.description.title = flags.title;
  input.frames = flags.inputs;
  if (!flags.inputs.empty() && is_result(flags.inputs.front())) {
    input.result = flags.inputs.front();
    input.frames.erase(input.frames.begin());
  }
  if (!flags.config.empty()) input.settings = read_text(flags.config);
  Session session(std::move(input));
  LocalServer server([&](const PageRequest& request) { return session.answer(request); });
  std::printf("dic view: %s\nPress Ctrl-C to end it.\n", server.address().c_str());
  std::fflush(stdout);
  if (!flags.no_browser && !open_browser(server.address()))
    std::fprintf(stderr, "dic: no browser could be started (xdg-open); open the address yourself.\n");
  server.serve(interruption.token());
}

}  // namespace

void add_view(CLI::App& app) {
  auto flags = std::make_shared<ViewFlags>();
  CLI::App* command = app.add_subcommand(
      "view", "Set up, run and explore a measurement in the browser; find templates, calibrate cameras");
  command->option_defaults()->always_capture_default();
  command
      ->add_option(
          "INPUT", flags->inputs,
          "Frames to measure (images, quoted globs, folders, one video), or a result (its folder or "
          "result.vtkhdf), optionally followed by its images. Without it, the page lists the current "
          "folder to choose from")
      ->type_name("")
      ->default_str("");
  command->add_option("--config", flags->config, "TOML file with the initial settings")->type_name("FILE");
  command->add_option("-o,--output", flags->output, "Folder of the results; the page can choose another one")
      ->type_name("DIR");
  command->add_option("--title", flags->title, "Title of the page")->type_name("TEXT");
  command->add_flag("--no-browser", flags->no_browser, "Print the address, but do not start a browser");
  command->footer(std::string(kViewExamples) +
                  "The page is reachable from this machine only, at an address that only you know. " +
                  guide("user-guide.md") + " shows what it can do.");
  command->callback([flags] { run_view(*flags); });
}

}  // namespace dic::app

/// Input: a TOML configuration, for dic track and for the page of dic view.
#include <dic/error.hpp>
#include <dic/track_options.hpp>

#include "commands.hpp"
#include "config_file.hpp"
#include "memory_file.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

const std::string& command_line() {
  static const std::string none;
  return none;
}

namespace {

void read_for_command(const std::string& file) {
  CLI::App app;
  TrackJob job;
  for (const TrackOption& option : track_options()) {
    const std::string name = "--" + option.name;
    const auto set = [&](const std::string& value) { option.set(job, value); };
    if (option.kind == OptionKind::flag)
      app.add_flag_callback(name, [set] { set("true"); });
    else
      app.add_option_function<std::string>(name, set);
  }
  read_config(app, file);
  job.validate();
}

void read_for_page(const std::string& text) {
  AllowedFolders folders;
  folders.add("/nowhere");
  settings_of(text);
  job_from(text, folders).validate();
}

template <typename Read>
void accept_or_refuse(const Read& read, const std::string& input) {
  try {
    read(input);
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace dic::app

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  dic::app::accept_or_refuse(dic::app::read_for_command, file.path());
  dic::app::accept_or_refuse(dic::app::read_for_page, {reinterpret_cast<const char*>(data), size});
  return 0;
}

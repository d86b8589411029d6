#include "config_file.hpp"

#include <toml++/toml.h>

#include <dic/error.hpp>
#include <dic/io.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace dic::app {

namespace {

/// Throws UsageError for a broken file or one with tables: CLI11 would read the good lines and ignore tables.
void check(const std::string& text, const std::string& file) {
  try {
    for (const auto& [key, value] : toml::parse(text))
      if (value.is_table())
        throw UsageError("Unknown key \"" + std::string(key.str()) + "\" in " + file +
                         ": options are not in tables; --save-config writes a file with all of them.");
  } catch (const toml::parse_error& e) {
    throw UsageError("The configuration " + file + " cannot be understood: line " +
                     std::to_string(e.source().begin.line) + ": " + std::string(e.description()) + ".");
  }
}

std::vector<CLI::ConfigItem> parse(const std::string& file) {
  const std::string text = read_text(file);
  check(text, file);
  std::istringstream stream(text);
  try {
    return CLI::ConfigTOML().from_config(stream);
  } catch (const CLI::Error& e) {
    throw UsageError("The configuration " + file + " cannot be understood: " + e.what() + ".");
  }
}

void set(CLI::Option& option, const CLI::ConfigItem& item, const std::string& file) {
  try {
    if (option.get_expected_min() == 0)  // a flag
      option.add_result(option.get_flag_value(item.name, CLI::ConfigTOML().to_flag(item)));
    else
      option.add_result(item.inputs);
    option.run_callback();
  } catch (const CLI::Error& e) {
    throw UsageError("Key \"" + item.name + "\" in " + file + ": " + e.what() + ".");
  }
}

}  // namespace

void read_config(CLI::App& command, const std::string& file) {
  for (const CLI::ConfigItem& item : parse(file)) {
    CLI::Option* option = item.parents.empty() ? command.get_option_no_throw("--" + item.name) : nullptr;
    if (!option || !option->get_configurable())
      throw UsageError(
          "Unknown key \"" + item.fullname() + "\" in " + file +
          ": keys are the long names of the options; --save-config writes a file with all of them.");
    const bool is_none = option->get_default_str().empty() && item.inputs == std::vector<std::string>{""};
    if (option->count() == 0 && !is_none) set(*option, item, file);
  }
}

void save_config(const CLI::App& command, const std::string& file) {
  write_text_file(file, command.config_to_str(true, true));
}

}  // namespace dic::app

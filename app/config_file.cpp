#include "config_file.hpp"

#include <toml++/toml.h>

#include <dic/error.hpp>
#include <dic/io.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/toml_keys.hpp"
#include "commands.hpp"

namespace dic::app {

namespace {

[[noreturn]] void throw_unknown(const std::string& key, const std::string& where) {
  throw UsageError("Unknown key \"" + key + "\" in " + where + ": options are not in tables.");
}

/// CLI11 would read the good lines of a broken file and ignore tables.
void check(const std::string& text, const std::string& where) {
  bench::refuse_deep_keys(text, where);
  for (const auto& [key, value] : toml::parse(text))
    if (value.is_table() || value.is_array_of_tables()) throw_unknown(std::string(key.str()), where);
}

void set_from_file(CLI::Option& option, const CLI::ConfigItem& item, const std::string& file) {
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

std::vector<CLI::ConfigItem> config_items(const std::string& text, const std::string& where) {
  const std::string broken = "T" + where.substr(1) + " cannot be understood: ";
  try {
    check(text, where);
    std::istringstream stream(text);
    auto items = CLI::ConfigTOML().from_config(stream);
    for (const CLI::ConfigItem& item : items)
      if (!item.parents.empty()) throw_unknown(item.fullname(), where);
    return items;
  } catch (const toml::parse_error& e) {
    throw UsageError(broken + "line " + std::to_string(e.source().begin.line) + ": " +
                     std::string(e.description()) + ".");
  } catch (const CLI::Error& e) {
    throw UsageError(broken + e.what() + ".");
  }
}

void read_config(CLI::App& command, const std::string& file) {
  for (const CLI::ConfigItem& item : config_items(read_text(file), "the configuration " + file)) {
    CLI::Option* option = command.get_option_no_throw("--" + item.name);
    if (!option || !option->get_configurable())
      throw UsageError(
          "Unknown key \"" + item.name + "\" in " + file +
          ": keys are the long names of the options; --save-config writes a file with all of them.");
    const bool is_none = option->get_default_str().empty() && item.inputs == std::vector<std::string>{""};
    if (option->count() == 0 && !is_none) set_from_file(*option, item, file);
  }
}

void save_config(const CLI::App& command, const std::string& file) {
  write_text_file(file, command.config_to_str(true, true));
}

}  // namespace dic::app

#include "config_file.hpp"

#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <vector>

namespace dic::app {

namespace {

std::vector<CLI::ConfigItem> parse(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw FileError("Cannot read the configuration " + file + ": check its name and its rights.");
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

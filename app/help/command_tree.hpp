#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dic::app {

/// One option as manual pages and completion describe it.
struct OptionText {
  std::vector<std::string> names;  ///< "-o", "--output"; the name of a positional argument
  std::string value;               ///< "DIR", "PX|auto"; empty for a flag
  std::vector<std::string> choices;
  std::string default_value, description;
  std::string group;  ///< heading of the help under which it stands: "Input"
  bool is_positional = false, takes_many = false;

  bool takes_folder() const { return value == "DIR"; }
};

/// A command with its path ("dic bench track") and its options in the order of the help.
struct CommandText {
  std::string path, description, footer;
  std::vector<OptionText> options;
  std::vector<const CLI::App*> commands;
};

/// The program and all its commands, in depth-first order.
std::vector<CommandText> command_tree(const CLI::App& program);

/// The last word of a path: "track".
std::string last_word(const std::string& path);

std::string joined(const std::vector<std::string>& words, const std::string& between);

}  // namespace dic::app

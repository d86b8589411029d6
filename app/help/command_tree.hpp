#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dic::app {

/// What manual pages and completion say of an option.
struct OptionText {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional argument its name
  std::string value;               ///< "DIR", "PX|auto"; empty for a flag
  std::vector<std::string> choices;
  std::string default_value, description;
  bool is_positional = false, takes_many = false;

  bool takes_folder() const { return value == "DIR"; }
};

/// A command with its path ("dic bench track") and its options in the order of the help.
struct CommandText {
  std::string path, description, footer;
  std::vector<OptionText> options;
  std::vector<const CLI::App*> commands;
};

/// The program and all its commands, each before its own commands.
std::vector<CommandText> command_tree(const CLI::App& program);

/// The last word of a path: "track".
std::string last_word(const std::string& path);

std::string joined(const std::vector<std::string>& words, const std::string& between);

}  // namespace dic::app

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dic::app {

/// The items of a TOML text, all outside tables. where: "the configuration my.toml", for messages. Throws
/// UsageError for a text that is no TOML and for tables.
std::vector<CLI::ConfigItem> config_items(const std::string& text, const std::string& where);

/// Gives the options of a command that were not typed the values of a TOML file, whose keys are the long
/// names of the options. Throws FileError if it cannot be read, UsageError for keys that are no options.
void read_config(CLI::App& command, const std::string& file);

/// Writes every option with its present value and its description, as `read_config` reads it. Throws
/// FileError.
void save_config(const CLI::App& command, const std::string& file);

}  // namespace dic::app

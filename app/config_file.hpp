#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dic::app {

/// Gives the options of a command that were not typed the values of a TOML file, whose keys are the long
/// names of the options. Throws FileError if it cannot be read, UsageError for keys that are no options.
void read_config(CLI::App& command, const std::string& file);

/// Writes every option with its present value and its description, as `read_config` reads it. Throws
/// FileError.
void save_config(const CLI::App& command, const std::string& file);

}  // namespace dic::app

#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dic::app {

/// Help as CLI11 writes it, in lines that fit the terminal.
class HelpFormat : public CLI::Formatter {
 public:
  /// The usage and the first example of the footer, which a new user looks for first.
  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

/// Number of columns of the terminal of stdout; without a terminal, that of the environment (COLUMNS) or 80.
int terminal_columns();

/// The text in lines of at most `columns`, broken at spaces. The first line begins in column `indent`; the
/// others begin with that many spaces. A longer word has a line of its own.
std::string wrapped(const std::string& text, int indent, int columns);

}  // namespace dic::app

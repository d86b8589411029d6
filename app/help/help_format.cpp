#include "help/help_format.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace dic::app {

namespace {

constexpr int kDescriptionColumn = 30;
constexpr int kNarrow = 60;  ///< below this many columns, descriptions have lines of their own
constexpr int kNarrowest = 40, kWidest = 120;
constexpr int kContinuation = 6;

/// A name at the left and its description at the right, or below the name if that is long.
std::string entry(const std::string& name, const std::string& description) {
  const int columns = terminal_columns();
  const int indent = columns < kNarrow ? kContinuation : kDescriptionColumn;
  std::string text = "  " + wrapped(name, kContinuation, columns);
  if (description.empty()) return text + '\n';
  const bool is_short = text.find('\n') == std::string::npos && static_cast<int>(text.size()) < indent;
  text += is_short ? std::string(indent - text.size(), ' ') : "\n" + std::string(indent, ' ');
  return text + wrapped(description, indent, columns) + '\n';
}

/// Adds a space after each comma of {a,b,c}, so that lines can be broken there.
std::string breakable(const std::string& name) {
  bool in_choices = false;
  std::string text;
  for (const char c : name) {
    if (c == '{') in_choices = true;
    if (c == '}') in_choices = false;
    text += c;
    if (c == ',' && in_choices) text += ' ';
  }
  return text;
}

}  // namespace

int terminal_columns() {
  winsize size{};
  int columns = 0;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (const char* told = std::getenv("COLUMNS"); columns == 0 && told) columns = std::atoi(told);
  return columns > 0 ? std::clamp(columns, kNarrowest, kWidest) : 80;
}

std::string wrapped(const std::string& text, int indent, int columns) {
  const std::string new_line = '\n' + std::string(indent, ' ');
  std::string lines;
  int column = indent;  // the first line, too, continues a line of this length
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const int length = static_cast<int>(word.size());
    const bool is_first = lines.empty();
    if (!is_first && column + 1 + length > columns) {
      lines += new_line;
      column = indent;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += length;
  }
  return lines;
}

std::string HelpFormat::make_usage(const CLI::App* command, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(command, std::move(name));
  const std::string heading = "Examples:\n", footer = command->get_footer();
  const std::size_t examples = footer.find(heading);
  if (examples == std::string::npos) return usage;
  const std::size_t first = footer.find_first_not_of(' ', examples + heading.size());
  // At least three spaces separate a command from its explanation.
  const std::string example =
      footer.substr(first, std::min(footer.find("   ", first), footer.find('\n', first)) - first);
  return usage + "Example: " + example + '\n';
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string name = make_option_name(option, is_positional) + make_option_opts(option);
  const bool is_long = static_cast<int>(name.size()) + 2 > terminal_columns();
  return entry(is_long ? breakable(name) : name, make_option_desc(option));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return entry(command->get_display_name(true), command->get_description());
}

}  // namespace dic::app

#include "help/manual.hpp"

#include <algorithm>
#include <dic/info.hpp>
#include <sstream>

namespace dic::app {

namespace {

/// Text escaped for roff, so that nothing in it is a request.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  const bool looks_like_a_request = escaped.starts_with('.') || escaped.starts_with('\'');
  return looks_like_a_request ? "\\&" + escaped : escaped;
}

std::string page_name(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

void write_option(std::ostream& page, const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names)
    names.push_back((option.is_positional ? "\\fI" : "\\fB") + roff(name) + "\\fR");
  page << ".TP\n" << joined(names, ", ");
  if (!option.value.empty() && !option.is_positional) page << " \\fI" << roff(option.value) << "\\fR";
  page << '\n' << roff(option.description);
  if (!option.choices.empty()) page << "\n.br\nOne of: " << roff(joined(option.choices, ", ")) << '.';
  if (!option.default_value.empty()) page << "\n.br\nDefault: " << roff(option.default_value) << '.';
  page << '\n';
}

/// Writes the options under the headings of the help.
void write_options(std::ostream& page, const CommandText& command) {
  page << ".SH OPTIONS\n";
  std::string group = "Options";  // heading that CLI11 gives to options without a group
  for (const OptionText& option : command.options) {
    if (!option.is_positional && option.group != group) page << ".SS " << roff(option.group) << '\n';
    if (!option.is_positional) group = option.group;
    write_option(page, option);
  }
}

void write_synopsis(std::ostream& page, const CommandText& command) {
  page << ".SH SYNOPSIS\n.B " << roff(command.path) << '\n';
  if (!command.commands.empty()) page << ".I COMMAND\n";
  page << "[\\fIOPTION\\fR...]\n";
  for (const OptionText& option : command.options)
    if (option.is_positional)
      page << "\\fI" << roff(option.value.empty() ? option.names.front() : option.value) << "\\fR"
           << (option.takes_many ? "..." : "") << '\n';
}

void write_commands(std::ostream& page, const CommandText& command) {
  page << ".SH COMMANDS\n";
  for (const CLI::App* each : command.commands)
    page << ".TP\n.B " << roff(each->get_name()) << '\n' << roff(each->get_description()) << '\n';
}

/// Writes the footer of the help, whose examples keep their lines.
void write_footer(std::ostream& page, const std::string& footer) {
  page << ".SH NOTES\n.nf\n";
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) page << roff(line) << '\n';
  page << ".fi\n";
}

void write_related(std::ostream& page, const std::vector<CommandText>& tree, const CommandText& command) {
  page << ".SH SEE ALSO\n";
  std::vector<std::string> pages;
  for (const CommandText& other : tree) {
    const bool is_above = command.path.starts_with(other.path + " ");
    const bool is_below = other.path.starts_with(command.path + " ");
    if (is_above || is_below) pages.push_back("\\fB" + roff(page_name(other.path)) + "\\fR(1)");
  }
  page << joined(pages, ",\n") << '\n';
}

ManualPage page_of(const std::vector<CommandText>& tree, const CommandText& command) {
  const std::string name = page_name(command.path);
  std::ostringstream page;
  page << ".TH \"" << name << "\" 1 \"\" \"dic " << version() << "\" \"User Commands\"\n"
       << ".SH NAME\n"
       << roff(name) << " \\- " << roff(command.description) << '\n';
  write_synopsis(page, command);
  if (!command.commands.empty()) write_commands(page, command);
  write_options(page, command);
  if (!command.footer.empty()) write_footer(page, command.footer);
  write_related(page, tree, command);
  return {name + ".1", page.str()};
}

}  // namespace

std::vector<ManualPage> manual_pages(const std::vector<CommandText>& tree) {
  std::vector<ManualPage> pages;
  for (const CommandText& command : tree) pages.push_back(page_of(tree, command));
  return pages;
}

}  // namespace dic::app

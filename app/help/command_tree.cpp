#include "help/command_tree.hpp"

namespace dic::app {

namespace {

/// Splits a value such as "TEXT:{a,b}" into the text and the choices.
void split_choices(OptionText& text) {
  const std::size_t open = text.value.find(":{"), close = text.value.find('}');
  if (open == std::string::npos || close == std::string::npos) return;
  text.choices = CLI::detail::split(text.value.substr(open + 2, close - open - 2), ',');
  text.value = text.value.substr(0, open);
}

OptionText describe(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  text.is_positional = text.names.empty();
  if (text.is_positional) text.names = {option.get_name(true)};
  if (option.get_expected_max() > 0) text.value = option.get_type_name();
  text.default_value = option.get_default_str();
  text.description = option.get_description();
  text.group = option.get_group();
  text.takes_many = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  split_choices(text);
  return text;
}

void add_command(const CLI::App& command, const std::string& path, std::vector<CommandText>& tree) {
  CommandText text;
  text.path = path;
  text.description = command.get_description();
  text.footer = command.get_footer();
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty()) text.options.push_back(describe(*option));
  text.commands = command.get_subcommands({});
  tree.push_back(text);
  for (const CLI::App* next : text.commands) add_command(*next, path + " " + next->get_name(), tree);
}

}  // namespace

std::vector<CommandText> command_tree(const CLI::App& program) {
  std::vector<CommandText> tree;
  add_command(program, program.get_name(), tree);
  return tree;
}

std::string last_word(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace dic::app

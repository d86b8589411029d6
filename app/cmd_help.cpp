#include <dic/error.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "help/completion.hpp"
#include "help/manual.hpp"

namespace dic::app {

namespace {

struct HelpCommand {
  std::vector<std::string> words;
  std::string completion, manual;
};

/// Prints the help of the command that the words name. App::help would print that of the command that was
/// typed, which is `help`.
void print_help(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  std::string path = program.get_name();
  for (const std::string& word : words) {
    const auto found = command->get_subcommands([&](const CLI::App* c) { return c->get_name() == word; });
    if (found.empty())
      throw UsageError("\"" + word + "\" is not a command of " + command->get_name() + "; see dic --help.");
    command = found.front();
    path += " " + word;
  }
  std::cout << command->get_formatter()->make_help(command, path, CLI::AppFormatMode::Normal);
}

void write_manual(const CLI::App& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const ManualPage& page : manual_pages(command_tree(program)))
    write_text_file(folder / page.name, page.text);
}

void run_help(const CLI::App& program, const HelpCommand& flags) {
  const auto tree = [&] { return command_tree(program); };
  if (!flags.manual.empty()) return write_manual(program, flags.manual);
  if (flags.completion == "bash")
    std::cout << bash_completion(tree());
  else if (flags.completion == "zsh")
    std::cout << zsh_completion(tree());
  else if (flags.completion == "fish")
    std::cout << fish_completion(tree());
  else
    print_help(program, flags.words);
}

}  // namespace

void add_help(CLI::App& program) {
  auto flags = std::make_shared<HelpCommand>();
  CLI::App* command = program.add_subcommand(
      "help", "Print the options of a command; write manual pages and shell completion");
  command->add_option("command", flags->words, "Name of a command; none = the program")->type_name("COMMAND");
  command->add_option("--completion", flags->completion, "Print a script that completes dic in this shell")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command
      ->add_option("--manual", flags->manual,
                   "Write the manual pages (dic.1, dic-track.1, ...) into this folder")
      ->type_name("DIR");
  command->footer(
      "Examples:\n"
      "  dic help track\n"
      "  source <(dic help --completion bash)     completes commands, options and values in this shell\n");
  command->callback([&program, flags] { run_help(program, *flags); });
}

}  // namespace dic::app

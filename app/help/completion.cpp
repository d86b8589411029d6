#include "help/completion.hpp"

#include <algorithm>
#include <dic/field_schema.hpp>
#include <sstream>

namespace dic::app {

namespace {

/// "'dic track' | 'dic bench track'": the paths of all commands but the program itself.
std::string quoted_paths(const std::vector<CommandText>& tree, const std::string& between) {
  std::vector<std::string> paths;
  for (const CommandText& command : tree)
    if (command.path.find(' ') != std::string::npos) paths.push_back("'" + command.path + "'");
  return joined(paths, between);
}

std::vector<std::string> command_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.commands) names.push_back(each->get_name());
  return names;
}

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options)
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Values that are offered for an option: its choices, else names that it is known to take.
std::vector<std::string> values_of(const OptionText& option) {
  if (!option.choices.empty()) return option.choices;
  const auto is_named = [&](const char* name) {
    return std::ranges::find(option.names, name) != option.names.end();
  };
  if (is_named("--device")) return {"auto", "cpu", "cuda", "cuda:all"};
  std::vector<std::string> fields;
  if (is_named("--field"))
    for (const FieldArray& array : kFieldArrays)
      if (array.role != ArrayRole::status && !array.label.empty()) fields.emplace_back(array.name);
  return fields;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return CLI::detail::find_and_replace(std::move(text), from, to);
}

/// Text escaped for '...' of bash and zsh.
std::string in_quotes(const std::string& text) { return replaced(text, "'", "'\\''"); }

/// A description inside a specification of zsh's _arguments, in '...'.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string("[]:\\").find(c) != std::string::npos) escaped += '\\';
    escaped += c;
  }
  return in_quotes(escaped);
}

std::string zsh_function(const std::string& path) { return "_" + replaced(path, " ", "_"); }

/// The value of an option in a specification of zsh's _arguments: ":VALUE:action".
std::string zsh_value(const OptionText& option) {
  if (option.value.empty()) return "";
  const std::vector<std::string> values = values_of(option);
  const std::string action = !values.empty()         ? "(" + joined(values, " ") + ")"
                             : option.takes_folder() ? "_files -/"
                                                     : "_files";
  return ":" + zsh_text(option.value) + ":" + action;
}

void write_zsh_options(std::ostream& script, const CommandText& command) {
  for (const OptionText& option : command.options) {
    if (option.is_positional) continue;
    for (const std::string& name : option.names)
      script << "    '*" << name << "[" << zsh_text(option.description) << "]" << zsh_value(option)
             << "' \\\n";
  }
}

void write_zsh_command(std::ostream& script, const CommandText& command) {
  script << zsh_function(command.path) << "() {\n";
  if (command.commands.empty()) {
    script << "  _arguments \\\n";
    write_zsh_options(script, command);
    script << "    '*:file:_files'\n}\n\n";
    return;
  }
  script << "  local state line\n  _arguments -C \\\n";
  write_zsh_options(script, command);
  script << "    '1: :->command' '*:: :->arguments'\n  case $state in\n    command)\n      local -a "
            "commands=(\n";
  for (const CLI::App* each : command.commands)
    script << "        '" << each->get_name() << ":" << in_quotes(each->get_description()) << "'\n";
  script << "      )\n      _describe command commands ;;\n    arguments)\n      case $words[1] in\n";
  for (const std::string& name : command_names(command))
    script << "        " << name << ") " << zsh_function(command.path + " " + name) << " ;;\n";
  script << "      esac ;;\n  esac\n}\n\n";
}

/// Text escaped for "..." of fish.
std::string fish_text(const std::string& text) {
  return replaced(replaced(replaced(text, "\\", "\\\\"), "\"", "\\\""), "$", "\\$");
}

void write_fish_command(std::ostream& script, const CommandText& command) {
  const std::string begin = "complete -c dic -n \"__dic_at '" + command.path + "'\"";
  for (const CLI::App* each : command.commands)
    script << begin << " -f -a " << each->get_name() << " -d \"" << fish_text(each->get_description())
           << "\"\n";
  for (const OptionText& option : command.options) {
    if (option.is_positional) continue;
    script << begin;
    for (const std::string& name : option.names)
      script << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
    if (const std::vector<std::string> values = values_of(option); !values.empty())
      script << " -x -a \"" << fish_text(joined(values, " ")) << "\"";
    else if (option.takes_folder())
      script << " -x -a \"(__fish_complete_directories)\"";
    else if (!option.value.empty())
      script << " -r";
    script << " -d \"" << fish_text(option.description) << "\"\n";
  }
}

}  // namespace

std::string bash_completion(const std::vector<CommandText>& tree) {
  std::ostringstream script;
  script
      << "# Completion of dic for bash.\n_dic() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=dic word\n"
         "  COMPREPLY=()\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$command $word\" in\n      "
      << quoted_paths(tree, " | ") << ") command=\"$command $word\" ;;\n    esac\n  done\n"
      << "  local values='' options='' commands=''\n  case \"$command $previous\" in\n";
  for (const CommandText& command : tree)
    for (const OptionText& option : command.options)
      for (const std::string& name : option.names)
        if (const std::vector<std::string> values = values_of(option);
            !values.empty() && !option.is_positional)
          script << "    '" << command.path << " " << name << "') values='" << joined(values, " ")
                 << "' ;;\n";
  script << "  esac\n  case \"$command\" in\n";
  for (const CommandText& command : tree)
    script << "    '" << command.path << "')\n      options='" << joined(option_names(command), " ")
           << "'\n      commands='" << joined(command_names(command), " ") << "' ;;\n";
  script << "  esac\n"
            "  if [[ -n $values ]]; then\n"
            "    local before=''\n    [[ $current == *,* ]] && before=${current%,*},\n"
            "    COMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${current##*,}\"))\n"
            "  elif [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
            "  else\n    COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n  fi\n}\n"
            "complete -o default -F _dic dic\n";
  return script.str();
}

std::string zsh_completion(const std::vector<CommandText>& tree) {
  std::ostringstream script;
  script << "#compdef dic\n# Completion of dic for zsh.\n\n";
  for (const CommandText& command : tree) write_zsh_command(script, command);
  // If compinit loads the file, it is the body of the function; if it is sourced, it registers the function.
  script << "if [[ $funcstack[1] == _dic ]]; then\n  _dic \"$@\"\nelse\n  compdef _dic dic\nfi\n";
  return script.str();
}

std::string fish_completion(const std::vector<CommandText>& tree) {
  std::ostringstream script;
  script
      << "# Completion of dic for fish.\n"
         "function __dic_at\n  set -l command dic\n  for word in (commandline -opc)[2..-1]\n"
         "    switch \"$command $word\"\n      case "
      << quoted_paths(tree, " ")
      << "\n        set command \"$command $word\"\n    end\n  end\n  test \"$command\" = \"$argv\"\nend\n\n";
  for (const CommandText& command : tree) write_fish_command(script, command);
  return script.str();
}

}  // namespace dic::app

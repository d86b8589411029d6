#pragma once

#include <string>
#include <vector>

#include "help/command_tree.hpp"

namespace dic::app {

/// Scripts that complete commands, options and their values in a shell, generated from the options of the
/// program.
std::string bash_completion(const std::vector<CommandText>& tree);
std::string zsh_completion(const std::vector<CommandText>& tree);
std::string fish_completion(const std::vector<CommandText>& tree);

}  // namespace dic::app

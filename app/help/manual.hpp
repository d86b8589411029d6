#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "help/command_tree.hpp"

namespace dic::app {

/// The manual page (section 1, roff) of one command: its file name ("dic-track.1") and its text.
struct ManualPage {
  std::string name, text;
};

/// One page per command, generated from the options of the program.
std::vector<ManualPage> manual_pages(const std::vector<CommandText>& tree);

}  // namespace dic::app

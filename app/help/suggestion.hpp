#pragma once

#include <string>
#include <vector>

namespace dic::app {

/// Adds a question about the name that is most like `typed` to a message: " (did you mean --step?)". Empty if
/// no name is like it.
std::string suggestion(const std::string& typed, const std::vector<std::string>& names);

}  // namespace dic::app

#pragma once

#include <filesystem>
#include <vector>

#include "validate/validate.hpp"

namespace dic::validation {

/// Cases of the public image collections with known motion in this folder (DIC_REAL_DATA in tests).
std::vector<Case> real_cases(const std::filesystem::path& folder);

}  // namespace dic::validation

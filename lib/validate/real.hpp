#pragma once

#include <filesystem>
#include <vector>

#include "validate/validate.hpp"

namespace dic::validation {

/// Cases of the public collections of images of known motion that the folder holds (tests name it
/// DIC_REAL_DATA).
std::vector<Case> real_cases(const std::filesystem::path& folder);

}  // namespace dic::validation

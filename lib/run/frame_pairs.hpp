#pragma once

#include <string>
#include <vector>

namespace dic::run {

/// Compares the names of left and right images that belong together by their order. Numbers in which the
/// names of a pair differ are those of the cameras if they are the same in all pairs; any other difference is
/// a mismatch. Returns a sentence about the first one; empty if there is none.
std::string mismatch_of(const std::vector<std::string>& left, const std::vector<std::string>& right);

}  // namespace dic::run

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dic::bench {

/// Time of a program from start to end.
struct ProcessTime {
  double wall = 0;  ///< s
  double cpu = 0;   ///< s, user and system, of all threads
};

/// Runs the program (a path) with the arguments and waits for it. Its stdin is empty and its stdout is
/// discarded. Throws UsageError, with the last line of its stderr, if it cannot be started or fails.
ProcessTime time_process(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace dic::bench

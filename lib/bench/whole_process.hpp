#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dic::bench {

/// What a program took from its start to its end.
struct ProcessTime {
  double wall = 0;  ///< s
  double cpu = 0;   ///< s, user and system, of all threads
};

/// Runs the program (a path) with the arguments and waits for it. Its stdin is empty, its stdout goes
/// nowhere. Throws UsageError where it cannot be started or fails: with the last line of its stderr.
ProcessTime time_process(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace dic::bench

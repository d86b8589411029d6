#pragma once

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

namespace dic::app {

/// Lines for programs that read the output while it grows.
class OutputLines {
 public:
  explicit OutputLines(std::filesystem::path result) : result_(std::move(result)) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that ends must not end the measurement
  }

  void print(const std::string& line) {
    if (are_lost_) return;
    if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size() && std::fflush(stdout) == 0) return;
    std::cerr << "dic: What is printed cannot be written any more (" << std::generic_category().message(errno)
              << "): frames are still measured into " << result_.string() << ", until the end or Ctrl-C.\n";
    are_lost_ = std::freopen("/dev/null", "w", stdout) != nullptr;
  }
  bool are_lost() const { return are_lost_; }

 private:
  std::filesystem::path result_;
  bool are_lost_ = false;
};

}  // namespace dic::app

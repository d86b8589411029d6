#include "bench/whole_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <dic/error.hpp>
#include <fstream>

#include "bench/temporary_folder.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

/// Settings with which a child starts: no signal blocked, stderr redirected to a file.
class SpawnSettings {
 public:
  explicit SpawnSettings(const std::string& errors) {
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t files{};
};

double seconds_in(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line, last;
  while (std::getline(stream, line))
    if (!line.empty()) last = line;
  return last;
}

std::string command_line(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::string text = program.string();
  for (const std::string& argument : arguments) text += " " + argument;
  return text;
}

}  // namespace

ProcessTime time_process(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const SpawnSettings settings((folder.path / "stderr").string());
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program.string());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int error = posix_spawn(&child, words.front().c_str(), &settings.files, &settings.attributes,
                                pointers.data(), environ);
  if (error != 0) throw UsageError("Cannot start " + program.string() + ": " + std::strerror(error) + ".");
  int status = 0;
  rusage used{};
  while (wait4(child, &status, 0, &used) < 0)
    if (errno != EINTR) throw UsageError("Cannot wait for " + program.string() + ".");
  const ProcessTime time{seconds_since(start), seconds_in(used.ru_utime) + seconds_in(used.ru_stime)};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UsageError(command_line(program, arguments) + " failed: " + last_line(folder.path / "stderr"));
  return time;
}

}  // namespace dic::bench

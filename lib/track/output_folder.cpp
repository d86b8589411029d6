#include "track/output_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <fstream>

namespace dic {

namespace fs = std::filesystem;

namespace {

constexpr const char* kListName = ".dic-files";

[[noreturn]] void throw_not_writable(const fs::path& path, const std::string& reason) {
  throw FileError("Cannot write into " + path.string() + " (" + reason + "): choose another folder with -o.");
}

[[noreturn]] void throw_not_ours(const fs::path& path) {
  throw FileError(path.string() +
                  " is in the way and was not written by dic: move it, or choose another folder " +
                  "with -o.");
}

// A list that was tampered with must not lead outside the folder.
bool stays_inside(const fs::path& name) {
  const fs::path normal = name.lexically_normal();
  return !normal.empty() && normal.is_relative() && *normal.begin() != "..";
}

std::set<std::string> read_list(const fs::path& path) {
  std::set<std::string> names;
  std::ifstream list(path);
  for (std::string name; std::getline(list, name);)
    if (stays_inside(name)) names.insert(name);
  return names;
}

void check_writable(const fs::path& folder) {
  fs::path existing = fs::absolute(folder).lexically_normal();
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  if (!fs::is_directory(existing, ignored))
    throw_not_writable(folder, existing.string() + " is not a folder");
  if (access(existing.c_str(), W_OK | X_OK) != 0) throw_not_writable(folder, std::strerror(errno));
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_not_writable(folder, error.message());
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder, bool force) : folder_(std::move(folder)) {
  check_writable(folder_);
  earlier_ = read_list(list_path());
  for (const char* name : {"result.vtkhdf", "run.json"})
    if (fs::exists(folder_ / name) && !earlier_.contains(name)) throw_not_ours(folder_ / name);
  if (!earlier_.empty() && !force)
    throw FileError(folder_.string() +
                    " already holds a result of dic: choose another folder with -o, or replace " +
                    "it with --force.");
}

void OutputFolder::begin() {
  create_folder(folder_);
  remove_earlier_result();
}

fs::path OutputFolder::claim(const fs::path& name) {
  const fs::path path = folder_ / name;
  if (fs::exists(path)) throw_not_ours(path);
  create_folder(path.parent_path());
  std::ofstream list(list_path(), std::ios::app);
  list << name.generic_string() << '\n';
  list.close();
  if (!list) throw FileError("Cannot write " + list_path().string() + ": is the disk full?");
  return path;
}

std::string OutputFolder::unique_stem(const std::string& stem) {
  std::string unique = stem;
  for (int number = 2; !stems_.insert(unique).second; ++number) unique = stem + "_" + std::to_string(number);
  return unique;
}

fs::path OutputFolder::list_path() const { return folder_ / kListName; }

void OutputFolder::remove_earlier_result() {
  std::error_code ignored;  // what cannot be removed is reported when it is in the way
  std::set<fs::path> parents;
  for (const std::string& name : earlier_) {
    fs::remove(folder_ / name, ignored);
    parents.insert((folder_ / name).parent_path());
  }
  parents.erase(folder_);
  for (const fs::path& parent : parents) fs::remove(parent, ignored);  // only where it is empty now
  fs::remove(list_path(), ignored);
}

}  // namespace dic

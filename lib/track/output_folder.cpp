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
constexpr const char* kCollectionName = ".dic-new";

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

// The files of the list that are still there, also where a killed run left them unfinished.
std::set<std::string> read_list(const fs::path& folder) {
  std::set<std::string> names;
  std::ifstream list(folder / kListName);
  for (std::string line; std::getline(list, line);)
    for (const std::string& name : {line, line + ".part"})
      if (stays_inside(name) && fs::exists(folder / name)) names.insert(name);
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
  earlier_ = read_list(folder_);
  for (const char* name : {"result.vtkhdf", "run.json"})
    if (fs::exists(folder_ / name) && !earlier_.contains(name)) throw_not_ours(folder_ / name);
  if (replaces() && !force)
    throw FileError(folder_.string() +
                    " already holds a result of dic: choose another folder with -o, or replace " +
                    "it with --force.");
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (replaces()) fs::remove_all(collection(), ignored);
}

void OutputFolder::begin() {
  create_folder(folder_);
  std::error_code ignored;
  fs::remove_all(collection(), ignored);  // of a run that was killed
  if (!replaces()) fs::remove(list_path(), ignored);
}

fs::path OutputFolder::claim(const fs::path& name) {
  const std::string text = name.generic_string();
  if (fs::exists(folder_ / name) && !earlier_.contains(text)) throw_not_ours(folder_ / name);
  claimed_.insert(text);
  if (!replaces()) append_to_list({text});
  const fs::path path = (replaces() ? collection() : folder_) / name;
  create_folder(path.parent_path());
  return path;
}

std::string OutputFolder::unique_stem(const std::string& stem) {
  std::string unique = stem;
  for (int number = 2; !stems_.insert(unique).second; ++number) unique = stem + "_" + std::to_string(number);
  return unique;
}

void OutputFolder::commit() {
  if (!replaces()) return;
  append_to_list(claimed_);  // until the end, the list holds both results
  std::error_code ignored;   // what cannot be removed is reported when it is in the way
  std::set<fs::path> parents;
  for (const std::string& name : earlier_) {
    fs::remove(folder_ / name, ignored);
    parents.insert((folder_ / name).parent_path());
  }
  parents.erase(folder_);
  for (const fs::path& parent : parents) fs::remove(parent, ignored);  // only where it is empty now
  for (const std::string& name : claimed_) {
    create_folder((folder_ / name).parent_path());
    std::error_code error;
    fs::rename(collection() / name, folder_ / name, error);
    if (error) throw_not_writable(folder_ / name, error.message());
  }
  fs::remove(list_path(), ignored);
  append_to_list(claimed_);
}

fs::path OutputFolder::list_path() const { return folder_ / kListName; }
fs::path OutputFolder::collection() const { return folder_ / kCollectionName; }

void OutputFolder::append_to_list(const std::set<std::string>& names) const {
  std::ofstream list(list_path(), std::ios::app);
  for (const std::string& name : names) list << name << '\n';
  list.close();
  if (!list) throw FileError("Cannot write " + list_path().string() + ": free some space.");
}

}  // namespace dic

#include "run/output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/new_file.hpp"

namespace dic::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kListName = ".dic-files";
constexpr const char* kCollectionEnding = ".new";

[[noreturn]] void throw_not_writable(const fs::path& path, const std::string& reason) {
  throw FileError("Cannot write into " + path.string() + " (" + reason + "): choose another folder with -o.");
}

[[noreturn]] void throw_not_ours(const fs::path& path) {
  throw FileError(path.string() +
                  " is in the way and was not written by dic: move it, or choose another folder " +
                  "with -o.");
}

/// True if something exists at this path itself, without following a symbolic link.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

/// True if all parents of the file inside the folder are real folders: a symbolic link would lead outside.
bool has_own_parents(const fs::path& folder, const fs::path& name) {
  fs::path parent = folder;
  for (const fs::path& part : name.parent_path()) {
    parent /= part;
    std::error_code ignored;
    const auto type = fs::symlink_status(parent, ignored).type();
    if (type == fs::file_type::not_found) return true;
    if (type != fs::file_type::directory) return false;
  }
  return true;
}

// True if a name of the list stays inside the folder: a list that was tampered with must not lead outside.
bool stays_inside(const fs::path& folder, const fs::path& name) {
  const fs::path normal = name.lexically_normal();
  const bool is_below = !normal.empty() && normal.is_relative() && *normal.begin() != "..";
  return is_below && has_own_parents(folder, normal);
}

/// Writes a name as one line of the list, since frames may be named with a newline.
std::string line_of(const std::string& name) {
  std::string line;
  for (const char c : name) line += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
  return line;
}

std::string name_of(const std::string& line) {
  std::string name;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool is_escape = line[i] == '\\' && i + 1 < line.size();
    if (is_escape) ++i;
    name += is_escape && line[i] == 'n' ? '\n' : line[i];
  }
  return name;
}

// Reads the files of the list that still exist.
std::set<std::string> read_list(const fs::path& folder) {
  std::set<std::string> names;
  if (fs::is_symlink(folder / kListName)) throw_not_ours(folder / kListName);
  std::ifstream list(folder / kListName);
  for (std::string line; std::getline(list, line);) {
    const std::string name = name_of(line);
    if (stays_inside(folder, name) && is_there(folder / name) && !fs::is_directory(folder / name))
      names.insert(name);
  }
  return names;
}

nlohmann::json read_run(const fs::path& folder) {
  std::ifstream stream(folder / "run.json");
  return nlohmann::json::parse(stream, nullptr, false);
}

/// State of the run in run.json: "running", "interrupted" or "complete"; empty if run.json does not tell.
std::string state_of_run(const fs::path& folder) {
  const auto run = read_run(folder);
  if (!run.is_object() || !run.contains("state") || !run["state"].is_string()) return {};
  return run["state"];
}

/// True if no frame of the earlier result was measured, so that nothing is lost with it.
bool is_empty_result(const fs::path& folder, const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (name != "result.vtkhdf" && name != "run.json" && name != OutputFolder::kFramesName) return false;
  if (!names.contains("run.json")) return !names.contains("result.vtkhdf");
  const auto run = read_run(folder);
  if (!run.is_object() || !run.contains("frames") || !run["frames"].is_array()) return false;
  if (state_of_run(folder) == "running") return false;
  return std::ranges::all_of(run["frames"], [](const auto& frame) {
    return frame.is_object() && frame.contains("error") && frame["error"].is_string();
  });
}

/// Files of a folder and its subfolders, relative to it.
std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (entry->is_regular_file(ignored))
      names.insert(entry->path().lexically_relative(folder).generic_string());
  return names;
}

void check_writable(const fs::path& folder) {
  if (folder.empty()) throw UsageError("The folder of the results has no name: give one with -o.");
  std::error_code error;
  fs::path existing = fs::absolute(folder, error).lexically_normal();
  if (error) throw_not_writable(folder, "the current folder is gone");
  while (!fs::exists(existing, error) && !error && existing.has_relative_path())
    existing = existing.parent_path();
  if (error) throw_not_writable(folder, error.message());
  if (!fs::is_directory(existing, error)) throw_not_writable(folder, existing.string() + " is not a folder");
  if (access(existing.c_str(), W_OK | X_OK) != 0) throw_not_writable(folder, std::strerror(errno));
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_not_writable(folder, error.message());
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder, Earlier earlier) : folder_(std::move(folder)), wanted_(earlier) {
  check_writable(folder_);
  lock();
  look_at_earlier_result();
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!collection_.empty()) fs::remove_all(collection_, ignored);
}

OutputFolder::Lock::~Lock() {
  if (folder >= 0) ::close(folder);
}

/// Locks the folder until the object ends. The system holds the lock, so that a killed run leaves none. File
/// systems without such locks are used without.
void OutputFolder::lock() {
  if (lock_.folder < 0) lock_.folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_.folder < 0 || ::flock(lock_.folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw FileError("Another run of dic is writing into " + folder_.string() +
                  ": wait for it, or choose another folder with -o.");
}

void OutputFolder::look_at_earlier_result() {
  earlier_ = read_list(folder_);
  for (const char* name : {"result.vtkhdf", "run.json"})
    if (is_there(folder_ / name) && !earlier_.contains(name)) throw_not_ours(folder_ / name);
  if (wanted_ == Earlier::resume) resumed_ = find_unfinished();
  if (!resumed_.empty() || !replaces() || wanted_ == Earlier::replace || is_empty_result(folder_, earlier_))
    return;
  throw FileError(folder_.string() +
                  (state_of_run(folder_) == "running" || state_of_run(folder_) == "interrupted"
                       ? " holds the result of a run that was ended early: continue it with --resume, "
                         "replace it with --force, or choose another folder with -o."
                       : " already holds a result of dic: choose another folder with -o, or replace it with "
                         "--force."));
}

/// Finds the collection, or else the folder itself, that records how far its run came.
fs::path OutputFolder::find_unfinished() const {
  std::error_code ignored;
  const auto has_frames = [&](const fs::path& place) {
    return fs::symlink_status(place / kFramesName, ignored).type() == fs::file_type::regular &&
           fs::symlink_status(place / "result.vtkhdf", ignored).type() == fs::file_type::regular;
  };
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (core::is_unique_name(entry->path().filename(), kCollectionEnding) && has_frames(entry->path()))
      return entry->path();
  return earlier_.contains(kFramesName) && has_frames(folder_) ? folder_ : fs::path();
}

bool OutputFolder::resumed_is_complete() const { return state_of_run(resumed_) == "complete"; }

void OutputFolder::begin() {
  create_folder(folder_);
  lock();
  look_at_earlier_result();
  if (resumed_ == folder_) {
    claimed_ = std::exchange(earlier_, {});
  } else if (!resumed_.empty()) {
    collection_ = resumed_;
    claimed_ = files_below(collection_);
  }
  remove_leftovers();
  if (!resumed_.empty()) return;
  std::error_code ignored;
  if (replaces())
    collection_ = folder_ / core::unique_name(kCollectionEnding);
  else
    fs::remove(list_path(), ignored);
}

/// Removes temporary files of a run that was killed. Nobody else writes here now, and nobody else uses such
/// names.
void OutputFolder::remove_leftovers() const {
  std::set<fs::path> places = {folder_};
  for (const std::string& name : earlier_) places.insert((folder_ / name).parent_path());
  for (const std::string& name : claimed_)
    places.insert(((resumed_.empty() ? folder_ : resumed_) / name).parent_path());
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (const fs::path& place : places)
    for (fs::directory_iterator entry(place, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      const fs::path name = entry->path().filename();
      const auto type = entry->symlink_status(ignored).type();
      if ((type == fs::file_type::regular && core::NewFile::is_temporary(name)) ||
          (type == fs::file_type::directory && core::is_unique_name(name, kCollectionEnding)))
        leftovers.push_back(entry->path());
    }
  std::erase(leftovers, collection_);
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, ignored);
}

fs::path OutputFolder::claim(const fs::path& name) {
  const std::string text = name.generic_string();
  const bool is_ours = earlier_.contains(text) || (!replaces() && claimed_.contains(text));
  if (is_there(folder_ / name) && !is_ours) throw_not_ours(folder_ / name);
  if (!has_own_parents(folder_, name)) throw_not_ours(folder_ / name.parent_path());
  const bool is_new = claimed_.insert(text).second;
  if (!replaces() && is_new) append_to_list({text});
  const fs::path path = (replaces() ? collection_ : folder_) / name;
  create_folder(path.parent_path());
  return path;
}

void OutputFolder::adopt(const fs::path& name) {
  const std::string text = name.generic_string();
  if (claimed_.insert(text).second) append_to_list({text});
}

std::string UniqueStems::unique(const std::string& stem) {
  std::string unique = stem;
  for (int number = 2; !stems_.insert(unique).second; ++number) unique = stem + "_" + std::to_string(number);
  return unique;
}

void OutputFolder::commit() {
  if (!replaces()) return;
  append_to_list(claimed_);  // the list holds both results until the end
  std::error_code ignored;   // a file that cannot be removed is reported when it is in the way
  std::set<fs::path> parents;
  for (const std::string& name : earlier_) {
    if (!has_own_parents(folder_, name)) continue;
    fs::remove(folder_ / name, ignored);
    parents.insert((folder_ / name).parent_path());
  }
  parents.erase(folder_);
  for (auto parent = parents.rbegin(); parent != parents.rend();
       ++parent)                   // a folder comes after those that it contains
    fs::remove(*parent, ignored);  // succeeds only if the folder is empty now
  for (const std::string& name : claimed_) {
    if (!is_there(collection_ / name)) continue;  // the file was needed only while the run lasted
    create_folder((folder_ / name).parent_path());
    std::error_code error;
    fs::rename(collection_ / name, folder_ / name, error);
    if (error) throw_not_writable(folder_ / name, error.message());
  }
  fs::remove(list_path(), ignored);
  append_to_list(claimed_);
}

fs::path OutputFolder::keep() {
  fs::path place = replaces() ? std::exchange(collection_, {}) : folder_;
  return place;
}

fs::path OutputFolder::list_path() const { return folder_ / kListName; }

void OutputFolder::append_to_list(const std::set<std::string>& names) const {
  std::ofstream list(list_path(), std::ios::app);
  for (const std::string& name : names) list << line_of(name) << '\n';
  list.close();
  if (!list) throw FileError("Cannot write " + list_path().string() + ": free some space.");
}

}  // namespace dic::run

#include "run/output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "run/own_files.hpp"
#include "run/replacement.hpp"

namespace dic::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kListName = ".dic-files";

[[noreturn]] void throw_not_ours(const fs::path& path) {
  throw FileError(path.string() +
                  " is in the way and was not written by dic: move it, or choose another folder " +
                  "with -o.");
}

/// Reads the files of the list that still exist.
std::set<std::string> read_list(const fs::path& folder) {
  if (fs::is_symlink(folder / kListName)) throw_not_ours(folder / kListName);
  std::set<std::string> names = read_names(folder / kListName, folder);
  std::erase_if(names, [&](const std::string& name) {
    return !is_there(folder / name) || fs::is_directory(folder / name);
  });
  return names;
}

nlohmann::ordered_json read_run(const fs::path& folder) {
  std::ifstream stream(folder / "run.json");
  return nlohmann::ordered_json::parse(stream, nullptr, false);
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

/// True if a folder holds a result that records how far its run came.
bool can_be_continued(const fs::path& place) {
  return is_regular(place / OutputFolder::kFramesName) && is_regular(place / "result.vtkhdf");
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder, Earlier earlier) : folder_(std::move(folder)), wanted_(earlier) {
  check_writable(folder_);
  lock();
  finish_replacements(folder_, list_path());
  look_at_earlier_result();
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (collects() && !can_be_continued(collection_) && !has_begun(collection_))
    fs::remove_all(collection_, ignored);
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
  if (wanted_ == Earlier::change) return;
  earlier_ = read_list(folder_);
  for (const char* name : {"result.vtkhdf", "run.json"})
    if (is_there(folder_ / name) && !earlier_.contains(name)) throw_not_ours(folder_ / name);
  if (wanted_ == Earlier::resume) resumed_ = find_unfinished();
  if (!resumed_.empty() || earlier_.empty() || wanted_ == Earlier::replace ||
      is_empty_result(folder_, earlier_))
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
  for (const fs::path& collection : collections_in(folder_))
    if (can_be_continued(collection)) return collection;
  return earlier_.contains(kFramesName) && can_be_continued(folder_) ? folder_ : fs::path();
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
  if (!earlier_.empty() || wanted_ == Earlier::change)
    collection_ = new_collection(folder_);
  else
    fs::remove(list_path(), ignored);
}

/// Removes temporary files of a run that was killed. Nobody else writes here now, and nobody else uses such
/// names. A change leaves a result that can be continued.
void OutputFolder::remove_leftovers() const {
  std::set<fs::path> places = {folder_};
  for (const std::string& name : earlier_) places.insert((folder_ / name).parent_path());
  for (const std::string& name : claimed_)
    places.insert(((resumed_.empty() ? folder_ : resumed_) / name).parent_path());
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (const fs::path& place : places)
    std::ranges::move(temporary_files_in(place), std::back_inserter(leftovers));
  for (const fs::path& collection : collections_in(folder_))
    if (collection != collection_ && !(wanted_ == Earlier::change && can_be_continued(collection)))
      leftovers.push_back(collection);
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, ignored);
}

fs::path OutputFolder::claim(const fs::path& name) {
  const std::string text = name.generic_string();
  const bool is_ours =
      wanted_ == Earlier::change || earlier_.contains(text) || (!collects() && claimed_.contains(text));
  if (is_there(folder_ / name) && !is_ours) throw_not_ours(folder_ / name);
  if (!has_own_parents(folder_, name)) throw_not_ours(folder_ / name.parent_path());
  const bool is_new = claimed_.insert(text).second;
  if (!collects() && is_new) append_name(list_path(), text);
  const fs::path path = (collects() ? collection_ : folder_) / name;
  create_folder(path.parent_path());
  return path;
}

void OutputFolder::adopt(const fs::path& name) {
  const std::string text = name.generic_string();
  if (claimed_.insert(text).second) append_name(list_path(), text);
}

std::string UniqueStems::unique(const std::string& stem) {
  std::string unique = stem;
  for (int number = 2; !stems_.insert(unique).second; ++number) unique = stem + "_" + std::to_string(number);
  return unique;
}

void OutputFolder::commit() {
  if (!collects()) return;
  std::set<std::string> made, obsolete;
  for (const std::string& name : claimed_)
    if (is_there(collection_ / name)) made.insert(name);  // others were needed only while the run lasted
  std::ranges::set_difference(earlier_, made, std::inserter(obsolete, obsolete.end()));
  if (wanted_ != Earlier::change) {  // the list holds both results until the end
    std::set<std::string> both = earlier_;
    both.insert(made.begin(), made.end());
    write_names(list_path(), both);
  }
  replace_by(folder_, collection_, obsolete, list_path());
  collection_.clear();
}

bool OutputFolder::is_committing() const { return collects() && has_begun(collection_); }

fs::path OutputFolder::keep() {
  return collects() && !is_committing() ? std::exchange(collection_, {}) : folder_;
}

fs::path OutputFolder::list_path() const { return folder_ / kListName; }

}  // namespace dic::run

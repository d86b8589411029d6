#include "run/replacement.hpp"

#include <algorithm>
#include <array>
#include <dic/io.hpp>
#include <system_error>
#include <vector>

#include "core/new_file.hpp"
#include "run/own_files.hpp"
#include "run/run_log.hpp"

namespace dic::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCollectionEnding = ".new";
constexpr const char* kLinkEnding = ".link";
constexpr const char* kMarkerName = ".dic-commit";  ///< list of the obsolete files
/// Files that describe each other: nobody may ever see a new one beside an old one.
constexpr std::array kPair = {"result.vtkhdf", "run.json"};

/// Removes obsolete files, and the folders that are empty then. A file that cannot be removed is reported
/// when it is in the way.
void remove_obsolete(const fs::path& folder, const std::set<std::string>& names) {
  std::error_code ignored;
  std::set<fs::path> parents;
  for (const std::string& name : names) {
    fs::remove(folder / name, ignored);
    parents.insert((folder / name).parent_path());
  }
  parents.erase(folder);
  for (auto parent = parents.rbegin(); parent != parents.rend();
       ++parent)                   // a folder comes after those that it contains
    fs::remove(*parent, ignored);  // succeeds only if the folder is empty now
}

/// Replaces two files at once, which a file system cannot do by itself: both become symbolic links that lead
/// through a third one, the gate, from the folder of the old files to that of the new ones. One rename turns
/// the gate. Every step can be repeated.
class PairSwitch {
 public:
  PairSwitch(const fs::path& folder, const fs::path& collection)
      : folder_(folder),
        collection_(collection),
        old_(fs::path(collection).replace_extension(".old")),
        gate_(fs::path(collection).replace_extension(".now")) {}

  /// Makes both names lead to the new files. Does nothing if both are not there, old and new, or if the file
  /// system has no links: files are then replaced one by one.
  void execute() const {
    if (!has_pair(collection_, is_regular)) return;
    if (!leads_to(collection_.filename())) {
      if (!has_pair(folder_, is_there) || !keep_old_files() || !link(gate_, old_.filename())) return;
      for (const char* name : kPair)
        if (!link(folder_ / name, gate_.filename() / name)) return;
    }
    link(gate_, collection_.filename());
  }

  void remove_leftovers() const {
    std::error_code ignored;
    fs::remove(gate_, ignored);
    fs::remove_all(old_, ignored);
  }

 private:
  template <typename IsThere>
  static bool has_pair(const fs::path& place, const IsThere& is_there) {
    return std::ranges::all_of(kPair, [&](const char* name) { return is_there(place / name); });
  }

  bool leads_to(const fs::path& target) const {
    std::error_code ignored;
    return fs::read_symlink(gate_, ignored) == target;
  }

  /// False if an old file is a link of its own, or the file system refuses.
  bool keep_old_files() const {
    std::error_code error;
    fs::create_directory(old_, error);
    if (fs::symlink_status(old_, error).type() != fs::file_type::directory) return false;
    for (const char* name : kPair) {
      if (is_regular(old_ / name)) continue;
      if (!is_regular(folder_ / name)) return false;
      fs::create_hard_link(folder_ / name, old_ / name, error);
      if (error) return false;
    }
    return true;
  }

  /// Replaces a path by a symbolic link.
  bool link(const fs::path& path, const fs::path& target) const {
    const fs::path made = folder_ / core::unique_name(kLinkEnding);
    std::error_code error;
    fs::create_symlink(target, made, error);
    if (!error) fs::rename(made, path, error);
    if (!error) return true;
    std::error_code ignored;
    fs::remove(made, ignored);
    return false;
  }

  const fs::path folder_, collection_, old_, gate_;
};

/// Removes links that a killed replacement has not put into place.
void remove_loose_links(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> loose;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (core::is_unique_name(entry->path().filename(), kLinkEnding)) loose.push_back(entry->path());
  for (const fs::path& link : loose) fs::remove(link, ignored);
}

/// Every step can be repeated. Files are moved in the order of their names: result.vtkhdf and run.json last.
void finish(const fs::path& folder, const fs::path& collection, const fs::path& list) {
  remove_obsolete(folder, read_names(collection / kMarkerName, folder));
  const PairSwitch pair(folder, collection);
  pair.execute();
  for (const std::string& name : files_below(collection)) {
    if (name == kMarkerName) continue;
    if (!has_own_parents(folder, name)) throw_not_writable(folder / name, "a symbolic link is in the way");
    create_folder((folder / name).parent_path());
    std::error_code error;
    fs::rename(collection / name, folder / name, error);
    if (error) throw_not_writable(folder / name, error.message());
  }
  std::error_code ignored;
  for (const fs::path& cut_off : temporary_files_in(folder)) fs::remove(cut_off, ignored);
  if (is_regular(list)) {
    std::set<std::string> names = read_names(list, folder);
    std::erase_if(names, [&](const std::string& name) { return !is_there(folder / name); });
    write_names(list, names);
  }
  pair.remove_leftovers();
  remove_loose_links(folder);
  fs::remove_all(collection, ignored);
}

}  // namespace

fs::path new_collection(const fs::path& folder) { return folder / core::unique_name(kCollectionEnding); }

std::vector<fs::path> collections_in(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->symlink_status(ignored).type() == fs::file_type::directory &&
        core::is_unique_name(entry->path().filename(), kCollectionEnding))
      found.push_back(entry->path());
  return found;
}

bool has_begun(const fs::path& collection) { return is_regular(collection / kMarkerName); }

bool has_unfinished_replacement(const fs::path& folder) {
  return std::ranges::any_of(collections_in(folder), has_begun);
}

void replace_by(const fs::path& folder, const fs::path& collection, const std::set<std::string>& obsolete,
                const fs::path& list) {
  // After a power failure, the marker must not be there without the result.
  if (is_there(collection / "result.vtkhdf")) sync_to_disk(collection / "result.vtkhdf");
  std::error_code ignored;
  fs::remove(collection / kMarkerName, ignored);  // a link would be followed
  write_names(collection / kMarkerName, obsolete);
  finish(folder, collection, list);
}

void finish_replacements(const fs::path& folder, const fs::path& list) {
  for (const fs::path& collection : collections_in(folder))
    if (has_begun(collection)) finish(folder, collection, list);
}

}  // namespace dic::run

#include "run/replacement.hpp"

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
constexpr const char* kMarkerName = ".dic-commit";  ///< list of the obsolete files

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

/// Every step can be repeated. Files are moved in the order of their names: result.vtkhdf and run.json last.
void finish(const fs::path& folder, const fs::path& collection, const fs::path& list) {
  remove_obsolete(folder, read_names(collection / kMarkerName, folder));
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

#pragma once

#include <dic/track_files.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "view/json.hpp"

namespace dic::app {

/// Options of a run, from which the page makes its form: name, group, kind, choices, help and default.
Json option_list();

/// Names and values in the text of a TOML file as `--config` takes it: an object; lists are polygons. Throws
/// UsageError: not TOML, or keys that are no options.
Json settings_of(const std::string& toml);

/// Folders that a page may make the program read from or write to, with all that is in them.
class AllowedFolders {
 public:
  void add(const std::filesystem::path& folder);
  /// Follows links. Throws UsageError where the path is elsewhere; what: "The reference".
  void check(const std::filesystem::path& path, const std::string& what) const;

 private:
  /// The absolute path without links, also of what does not exist yet.
  static std::filesystem::path real(const std::filesystem::path& path);

  std::vector<std::filesystem::path> folders_;
};

/// The job that a page asks for, without its frames. Throws UsageError (see above; files outside the
/// folders), FileError.
TrackJob job_from(const std::string& toml, const AllowedFolders& folders);

}  // namespace dic::app

#pragma once

#include <string>

#include "view/json.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// What a folder has to open, for the page that chooses: {folder, parent (empty where it may not be read),
/// images, entries: {name, path, kind: "folder", "result" or "video"}}. folder: empty for the current one.
/// What leads out of `allowed` by a link is not listed. Throws UsageError for a folder outside of `allowed`,
/// FileError for one that cannot be read.
Json folder_list(const std::string& folder, const AllowedFolders& allowed);

/// Throws UsageError unless all files of these frames (a file, a folder, a quoted glob, a video) lie in the
/// allowed folders, FileError if there are none.
void check_frames(const std::string& frames, const AllowedFolders& allowed);

}  // namespace dic::app

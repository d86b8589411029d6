#pragma once

#include <string>

#include "view/json.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// Lists what can be opened in a folder, for the page: {folder, parent (empty where it may not be read),
/// images, entries: {name, path, kind: "folder", "result", "video", "image" or "calibration"}}. folder: empty
/// for the current one. Links that lead out of `allowed` are not listed. Throws UsageError for a folder
/// outside of `allowed`, FileError for one that cannot be read.
Json folder_list(const std::string& folder, const AllowedFolders& allowed);

/// Throws UsageError unless all files of these frames (a file, a folder, a quoted glob, a video) lie in the
/// allowed folders, FileError if there are none.
void check_frames(const std::string& frames, const AllowedFolders& allowed);

}  // namespace dic::app

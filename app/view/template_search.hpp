#pragma once

#include <dic/image.hpp>
#include <dic/match.hpp>
#include <memory>
#include <mutex>
#include <string>

#include "view/json.hpp"
#include "view/page_image.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// Template that the page names: {frame, rect: [x, y, width, height]}, which is cut out of a frame, or
/// {path}, a file. Throws UsageError, also for a file outside of the folders; FileError.
Image template_image(const Json& named, const NamedImages& frames, const AllowedFolders& folders);

/// Finds a template in one frame after the other. Calls may overlap, but are answered one by one.
class TemplateSearch {
 public:
  /// asked: {frame, template (see above), threshold, max_matches, rotations: [min, max] or null, the same for
  /// scales}. Answer: {template: name as `dic match` prints it, image, best_score, timed_out, matches:
  /// members of Match, and corners, those of the box}. Throws UsageError, FileError.
  Json find(const Json& asked, const NamedImages& frames, const AllowedFolders& folders);
  /// Other frames were opened.
  void forget();

 private:
  Matcher& matcher_for(Json asked, const NamedImages& frames, const AllowedFolders& folders);

  std::mutex mutex_;
  std::string made_for_;  ///< what the page asked for when `matcher_` was made, without the frame
  std::unique_ptr<Matcher> matcher_;
};

}  // namespace dic::app

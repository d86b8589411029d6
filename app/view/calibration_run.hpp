#pragma once

#include <dic/calibrate.hpp>
#include <dic/image.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "view/json.hpp"
#include "view/page_image.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// Calibration of one camera or two from images that the page chose. Calls may overlap.
class CalibrationRun {
 public:
  /// asked: {left: images of the camera or of the left one, right: those of the right one, plane: an image on
  /// the specimen}, each a file, a folder or a quoted glob, or empty. Answer: {names, sides: "left", "right"
  /// or "plane" of each image}. Throws UsageError (outside of the folders), FileError.
  Json choose(const Json& asked, const AllowedFolders& folders);
  /// Image of this number in the answer of `choose`. Throws FileError.
  Image image(int index) const;
  /// asked: {target: members of dic::Target, model}. Answer: {width, height, rms, coverage: a share for each
  /// camera, facts:
  /// [[name, text]], warnings, images: [{points, residuals: [[x, y]], rms, problem}] in the order of
  /// `choose`}. Takes seconds. Throws UsageError, FileError.
  Json calibrate(const Json& asked);
  /// Writes the last calibration to a camera file or, of two cameras, a stereo file; returns its path. Throws
  /// UsageError (no calibration, outside of the folders, exists and not force), FileError.
  std::string save(const std::string& path, bool force, const AllowedFolders& folders,
                   const std::string& command) const;

 private:
  /// Images that the page chose for one role.
  struct Chosen {
    std::string arguments;
    NamedImages images;
  };
  Json calibrate_one(const Target& target, LensModel model);
  Json calibrate_two(const Target& target, LensModel model);

  mutable std::mutex mutex_;
  Chosen left_, right_, plane_;
  std::variant<std::monostate, Calibration, StereoCalibration> found_;
};

}  // namespace dic::app

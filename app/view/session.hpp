#pragma once

#include <dic/image.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "view/calibration_run.hpp"
#include "view/camera_run.hpp"
#include "view/measurement.hpp"
#include "view/page_image.hpp"
#include "view/result_json.hpp"
#include "view/scratch_folder.hpp"
#include "view/server.hpp"
#include "view/template_search.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// Arguments of `dic view`.
struct ViewInput {
  std::vector<std::string> frames;              ///< files, globs, folders or one video; may be empty
  std::optional<std::filesystem::path> result;  ///< result.vtkhdf or its folder
  std::string settings;                         ///< text of a TOML file
  std::filesystem::path output = "dic_out";     ///< folder of a measurement
  std::string command;                          ///< command as typed, for run.json
  TestDescription description = {};
};

/// Answers the page of `dic view`. Calls may overlap.
class Session {
 public:
  /// Throws FileError, UsageError: frames or result cannot be opened.
  explicit Session(ViewInput input);

  PageAnswer answer(const PageRequest& request);

 private:
  using Words = std::vector<std::string>;

  PageAnswer answer_of(const PageRequest& request);
  PageAnswer page() const;
  PageAnswer get(const Words& words);
  PageAnswer post(const std::string& what, const Json& asked);
  /// Answers the page about a camera: its newest image ("image"; "right": of the right camera), its newest
  /// field ("field"), an array of it, or what has happened since a result.
  PageAnswer camera(const Words& words);
  Json measure_camera(const Json& asked);
  /// Throws UsageError while frames or a camera are measured.
  void require_idle() const;
  Json state();
  /// "reference", or the image of a frame of the result, from 0.
  PageAnswer image(const std::string& which);
  /// Image of one of the given frames, which are counted from 0.
  PageAnswer input_frame(const std::string& which) const;
  /// demanded: standard deviation of strain that a recommended gauge has to reach.
  PageAnswer preview_of(const std::string& toml, double demanded);
  PageAnswer mask_of(const std::string& toml);
  /// The description of the shown result for the page.
  Json shown_result();
  /// Opens other frames or another result, which the page chose below the allowed folders.
  Json open(const std::string& path);
  /// Shows the result with another strain, which is computed in a folder of its own.
  Json change_strain(const Json& asked);
  std::pair<std::shared_ptr<const Result>, std::shared_ptr<const Result>> original_and_strained();
  void show_strain(std::shared_ptr<const Result> original, std::shared_ptr<const Result> strained);
  /// A copy of the result with another strain. The caller holds reading_.
  std::shared_ptr<const Result> with_strain(const Result& original, const StrainOptions& strain);
  /// Puts the shown strain into the files of the result.
  Json keep_strain();
  /// The images that a chosen result names, if all of them lie in the allowed folders.
  NamedImages allowed_images_of(const Result& of) const;
  /// Opens a second result to compare with.
  Json open_other(const std::string& path);
  PageAnswer report_of(const Json& asked);
  Json start(const std::string& toml, bool force);
  TrackJob job_of(const std::string& toml) const;
  /// Reference of the measurement or of the result. Throws FileError if it is unknown.
  const Image& reference();
  bool has_result();
  /// The result that is shown. Throws UsageError if there is none, and while a measurement is under way.
  std::shared_ptr<const Result> result();
  /// Frames from this number on of a result that another process writes.
  Json grown(int from);

  ViewInput input_;
  AllowedFolders folders_;
  std::shared_mutex opening_;  ///< held alone while open() replaces the members below
  /// Serializes the use of HDF5, which may be without thread safety.
  std::mutex reading_;
  NamedImages images_;
  std::mutex mutex_;  ///< guards reference_ and result_
  std::optional<Image> reference_;
  std::shared_ptr<const Result> result_;
  /// The result with the strain that the page has chosen; null: that of result_.
  std::shared_ptr<const Result> strained_;
  std::shared_ptr<const Result> other_;  ///< second result
  std::optional<ScratchFolder> scratch_;
  int strains_ = 0;                ///< number of results in scratch_ so far
  std::string stamp_;              ///< stamp of its file when it was opened
  std::filesystem::path reopens_;  ///< result that is shown while no run has made another one
  Measurement measurement_;
  CameraRun camera_;
  TemplateSearch search_;
  CalibrationRun calibration_;
};

/// The images of a result, where its command names them: arguments that it needs to find its reference. Empty
/// where they are not there.
std::vector<std::string> images_of(const Result& result);

}  // namespace dic::app

#pragma once

#include <dic/image.hpp>
#include <dic/result.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "view/measurement.hpp"
#include "view/page_image.hpp"
#include "view/result_json.hpp"
#include "view/server.hpp"
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

  PageAnswer page() const;
  PageAnswer get(const Words& words);
  PageAnswer post(const std::string& what, const Json& asked);
  Json state();
  /// "reference", or the image of a frame of the result, from 0.
  PageAnswer image(const std::string& which);
  /// Image of one of the given frames, which are counted from 0.
  PageAnswer input_frame(const std::string& which) const;
  PageAnswer preview_of(const std::string& toml);
  PageAnswer mask_of(const std::string& toml);
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
  NamedImages images_;
  std::mutex mutex_;  ///< guards reference_ and result_
  std::optional<Image> reference_;
  std::shared_ptr<const Result> result_;
  std::string stamp_;              ///< stamp of its file when it was opened
  std::filesystem::path reopens_;  ///< result that is shown while no run has made another one
  Measurement measurement_;
};

/// The images of a result, where its command names them: arguments that it needs to find its reference. Empty
/// where they are not there.
std::vector<std::string> images_of(const Result& result);

}  // namespace dic::app

#pragma once

#include <dic/export.hpp>
#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/stereo_files.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

/// Rule that selects the next frame among several new files.
enum class ArrivalOrder : std::uint8_t {
  name,  ///< the first by name, in natural order; waits while that file is being written
  time   ///< the complete file that was written first
};
template <>
struct EnumNames<ArrivalOrder> {
  static constexpr EnumName<ArrivalOrder> table[] = {{ArrivalOrder::name, "name"},
                                                     {ArrivalOrder::time, "time"}};
};

/// A folder into which another program writes images, and when to stop watching it.
struct WatchOptions {
  std::filesystem::path folder;
  ArrivalOrder order = ArrivalOrder::name;
  /// Number of current frames after which the run ends; 0 = never.
  std::int64_t until = 0;
  /// Time without a new or changed file after which the run ends, s; 0 = never.
  double idle = 0;
  /// Time after which an incomplete file that does not change is skipped, s.
  double patience = 10;
  /// One sentence per problem; empty if the options are valid.
  DIC_API std::vector<std::string> validate() const;
};

/// Receives every frame as soon as it is in the result, with its number on the time axis. A frame that was
/// skipped has a field without nodes.
using WatchCallback = std::function<void(const FrameSummary&, const Field&, int number)>;

/// Measures like track_files, but the frames are the images of a folder, in the order of their arrival; the
/// first is the reference if job.reference is empty. job.frames is set to the folder. Existing images come
/// first. A file is read when its writer has closed it or moved it into the folder or, if the system does not
/// report that (network file systems), when it has stopped growing; one that cannot be read yet is retried.
///
/// `stop` ends the run as `until` does: frames in progress are finished, and the result is complete. Throws
/// Cancelled if no frame was measured until then, and what track_files throws.
DIC_API TrackSummary watch_folder(TrackJob job, const WatchOptions& options, const WatchCallback& on_frame = {},
                          std::stop_token stop = {});

/// Receives every pair as soon as it is in the result, with its number, 0 for the references. A pair that was
/// skipped has a field without nodes.
using StereoWatchCallback = std::function<void(const StereoFrameSummary&, const Field&, int number)>;

/// Measures like stereo_files, but the images are those of two folders, as watch_folder does for one. left: the
/// folder of the left camera, and when to stop. right: the folder of the right camera. The first images are the
/// references.
///
/// In the order of names, the numbers in the names tell which images belong together, those that are equal in
/// the first pair: once the folder of one camera has gone on to a later number, an image without a partner is
/// skipped, with an error that says so. Names that tell nothing, and images in the order of time, form pairs
/// by the order of their arrival. Throws what watch_folder throws.
DIC_API StereoSummary watch_folders(StereoJob job, const WatchOptions& left, const std::filesystem::path& right,
                            const StereoWatchCallback& on_written = {}, std::stop_token stop = {});

}  // namespace dic

#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

/// Which of several new files is the next frame.
enum class ArrivalOrder : std::uint8_t {
  name,  ///< the first by name, in natural order; one that is still being written is waited for
  time   ///< of those that are whole, the one that was written first
};
template <>
struct EnumNames<ArrivalOrder> {
  static constexpr EnumName<ArrivalOrder> table[] = {{ArrivalOrder::name, "name"},
                                                     {ArrivalOrder::time, "time"}};
};

/// A folder into which another program writes images.
struct WatchOptions {
  std::filesystem::path folder;
  ArrivalOrder order = ArrivalOrder::name;
  /// Ends after so many current frames; 0 = never.
  std::int64_t until = 0;
  /// s, ends when no file has come or changed for so long; 0 = never.
  double idle = 0;
  /// s, how long a file that is not whole may stay as it is, before it is skipped.
  double patience = 10;
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Gets every frame as soon as it is in the result: also those that were skipped, with a field without nodes.
using WatchCallback = std::function<void(const FrameSummary&, const Field&, int number)>;

/// As track_files, but the frames are the images of a folder, in the order in which they come; the first is
/// the reference where job.reference names none. job.frames is set to the folder. Images that are there
/// already come first. Files are taken when their writer has closed them or moved them there, or, where the
/// system does not say (network file systems), when they stop growing; one that cannot be read is waited for.
///
/// `stop` ends it as `until` does: frames that were begun are finished, and the result is complete. Throws
/// Cancelled where no frame was measured by then.
TrackSummary watch_folder(TrackJob job, const WatchOptions& options, const WatchCallback& on_frame = {},
                          std::stop_token stop = {});

}  // namespace dic

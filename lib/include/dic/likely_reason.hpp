#pragma once

#include <dic/track.hpp>
#include <string>

namespace dic {

/// What is likely where no point of a frame could be measured, and what to do: a sentence. From its counts by
/// status, from how bright, how rich in contrast and how sharp both images are.
std::string likely_reason(ImageView reference, ImageView frame,
                          const std::array<std::int64_t, kStatusCount>& counts);

/// The same of the first frame of a finished run in which no point was measured, whose images are read again;
/// with its name and the number of such frames. Empty where every frame has points.
std::string unmatched_warning(const TrackJob& job, const TrackSummary& summary);

}  // namespace dic

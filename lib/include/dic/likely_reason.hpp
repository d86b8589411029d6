#pragma once

#include <dic/export.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic {

/// Explains why no point of a frame could be measured, and what to do about it, in one sentence. The
/// explanation follows from the counts by status, and from brightness, contrast and sharpness of both images.
DIC_API std::string likely_reason(ImageView reference, ImageView frame,
                                  const std::array<std::int64_t, kStatusCount>& counts);

}  // namespace dic

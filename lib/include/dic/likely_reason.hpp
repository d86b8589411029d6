#pragma once

#include <dic/export.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic {

/// What is likely where no point of a frame could be measured, and what to do: a sentence. From its counts by
/// status, from how bright, how rich in contrast and how sharp both images are.
DIC_API std::string likely_reason(ImageView reference, ImageView frame,
                                  const std::array<std::int64_t, kStatusCount>& counts);

}  // namespace dic

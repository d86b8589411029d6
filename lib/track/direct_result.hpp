#pragma once

#include <dic/track.hpp>
#include <memory>

#include "track/backend.hpp"

namespace dic::track {

/// Both were measured in the same frame, `followed` through references in between, `direct` against the
/// original one. The values of `direct` count where both agree, because no errors of steps add up in them,
/// and where only `direct` has one. Positions and counts are those of `followed`.
std::unique_ptr<Result> with_direct(std::unique_ptr<Result> followed, std::unique_ptr<Result> direct,
                                    const TrackOptions& options, ThreadPool& pool);

/// The same for fields.
void take_direct(Field& followed, const Field& direct);

}  // namespace dic::track

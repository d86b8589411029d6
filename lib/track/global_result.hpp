#pragma once

#include <memory>

#include "track/backend.hpp"

namespace dic::track {

/// The measurement of a backend, then the global step and the strain of what it leaves, on the CPU when the
/// result is fetched. Positions stay those of the subsets: a coming reference starts from what was measured.
std::unique_ptr<Result> with_global_step(std::unique_ptr<Result> measured, const TrackOptions& options,
                                         ThreadPool& pool);

}  // namespace dic::track

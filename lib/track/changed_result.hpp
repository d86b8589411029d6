#pragma once

#include <dic/track.hpp>
#include <memory>

#include "analysis/interpolation_bias.hpp"
#include "track/backend.hpp"

namespace dic::track {

/// The measurement of a backend without this bias, and the strain that follows, on the CPU when the result is
/// fetched.
std::unique_ptr<Result> without_bias(std::unique_ptr<Result> measured,
                                     std::shared_ptr<const analysis::InterpolationBias> bias,
                                     const TrackOptions& options, ThreadPool& pool);

/// The measurement of filtered images with the noise before the filter. noise_gain: see Prefilter.
std::unique_ptr<Result> with_noise_before_filter(std::unique_ptr<Result> measured, double noise_gain);

}  // namespace dic::track

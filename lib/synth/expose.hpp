#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <dic/synth.hpp>
#include <vector>

#include "core/parallel.hpp"

namespace dic::synth {

/// Light added by the glare at a pixel, grey levels of 255.
double glare_at(const SynthOptions& options, double x, double y);

/// The image that a sensor makes of a pattern [y, x], grey levels of 255, in frame i: light, glare, gain,
/// offset, shot noise, noise, faults of the sensor, rounding. key: seed of the noise.
Image expose(const SynthOptions& options, const std::vector<double>& pattern, int i, std::uint64_t key,
             core::ThreadPool& pool);

}  // namespace dic::synth

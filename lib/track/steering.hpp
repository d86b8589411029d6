#pragma once

#include <cstdint>

/// What steers a measurement, on the CPU as on the GPU; what is decided point by point is in
/// <dic/shared/track_rules.hpp>.
namespace dic::track {

inline constexpr int kAutoRange = 2;        ///< px around a prediction that comes from a pyramid or a frame
inline constexpr int kAutoSteps = 8;        ///< times a peak on the border may be followed
inline constexpr float kRecognized = 0.5f;  ///< zncc at whole pixels of a subset that was surely found

/// Are so many points without a place that the pyramid must help?
constexpr bool many_lost(std::int64_t lost, std::int64_t points) { return 50 * lost > points; }
/// Are so many that the others may have been recognized by chance?
constexpr bool most_lost(std::int64_t lost, std::int64_t points) { return 2 * lost > points; }

/// Refinement begins where the search was surest, and goes on from what is measured; below the last rung a
/// start is not worth its iterations.
inline constexpr float kScoreLadder[] = {0.8f, 0.65f, kRecognized, 0.3f};
inline constexpr int kMaxRounds = 1000;  ///< of recovery; each passes the front on by one point

}  // namespace dic::track

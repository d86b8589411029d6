#pragma once

#include <cstdint>
#include <iterator>

/// Constants of a measurement, the same on CPU and GPU. What is decided point by point is in
/// <dic/shared/track_rules.hpp>.
namespace dic::track {

inline constexpr int kAutoRange = 2;        ///< px around a prediction that comes from a pyramid or a frame
inline constexpr int kAutoSteps = 8;        ///< times a peak on the border may be followed
inline constexpr float kRecognized = 0.5f;  ///< ZNCC at whole pixels of a subset that was surely found

/// True if so many points are lost or have no prediction that the image pyramid must help.
constexpr bool many_lost(std::int64_t lost, std::int64_t points) { return 50 * lost > points; }
/// True if so many points are lost that the others may have been found by chance.
constexpr bool most_lost(std::int64_t lost, std::int64_t points) { return 2 * lost > points; }
/// True if it is worth looking for lost points by features. Points that features did not find in earlier
/// frames (`given_up`) are not looked for again, unless most points are lost.
constexpr bool worth_features(std::int64_t lost, std::int64_t given_up, std::int64_t points) {
  return many_lost(lost - given_up, points) || most_lost(lost, points);
}

/// Refinement begins with the starts of the highest score, and goes on from what is measured. A start below
/// the last value is not worth its iterations.
inline constexpr float kScoreLadder[] = {0.8f, 0.65f, kRecognized, 0.3f};
inline constexpr float kLeastScore = std::end(kScoreLadder)[-1];
inline constexpr int kLastStep = static_cast<int>(std::size(kScoreLadder)) - 1;
/// The last step before lost points are looked for by features. Lower starts are mostly wrong where the
/// material has turned, and cost more than the features.
inline constexpr int kStepBeforeFeatures = 1;
/// Waves of recovery after each step of the ladder; each reaches one point further.
inline constexpr int kMaxWaves = 1000;

}  // namespace dic::track

#pragma once

#include <algorithm>
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
/// True if so many points are lost that the others may not lead to them, from neighbour to neighbour.
constexpr bool too_many_for_neighbours(std::int64_t lost, std::int64_t points) { return 5 * lost > points; }
/// True if it is worth looking for lost points all over the image, by the pyramid or by features. Points that
/// this did not find in earlier frames (`given_up`) are not looked for again, unless most points are lost.
constexpr bool worth_looking(std::int64_t lost, std::int64_t given_up, std::int64_t points) {
  return many_lost(lost - given_up, points) || most_lost(lost, points);
}
/// Number of points that are missing now (unpredicted, or lost), without those that are excused (see
/// is_excused): these are no reason to look all over the image, and come back beside their neighbours. If
/// most points are excused, they may come back anywhere.
constexpr std::int64_t missed(std::int64_t missing, std::int64_t excused_of_them, std::int64_t excused,
                              std::int64_t points) {
  return most_lost(excused, points) ? missing : missing - excused_of_them;
}
/// Number of frames after which the image pyramid is used again for points that it did not find.
inline constexpr std::int64_t kFramesBetweenTries = 8;

/// Numbers of lost points that a reference has given up looking for everywhere; kept from frame to frame.
/// Background and worn patterns would otherwise cost every frame as much as a large motion.
struct LostMemory {
  std::int64_t unpredicted = 0;  ///< points without a prediction that the pyramid did not help
  std::int64_t not_found = 0;  ///< points that the search did not find, even from predictions of the pyramid
  std::int64_t by_features = 0;  ///< lost points of the last frame that features did not find
  std::int64_t frames = 0;       ///< frames since the pyramid was used
  std::int64_t is_due = 0;       ///< 1 if the next frame tries everything again

  /// Notes the numbers of a frame, and which of these points the pyramid was used for.
  void note(bool predicted, std::int64_t unpredicted_now, bool searched, std::int64_t not_found_now) {
    unpredicted = predicted ? unpredicted_now : std::min(unpredicted, unpredicted_now);
    not_found = searched ? not_found_now : std::min(not_found, not_found_now);
    frames = predicted || searched || unpredicted + not_found == 0 ? 0 : frames + 1;
    is_due = frames >= kFramesBetweenTries ? 1 : 0;
    if (is_due != 0) unpredicted = not_found = frames = 0;
  }
};

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

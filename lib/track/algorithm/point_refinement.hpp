#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>

#include "features/local_motion.hpp"
#include "track/algorithm/start_search.hpp"

/// The way from starts to measured points, one page for all backends: points are refined from their own
/// starts, the highest scores first, and lost ones from the shape of a measured neighbour, wave by wave (the
/// idea of reliability-guided DIC, Pan 2009). A wave sees only the waves before, so that the order of points
/// does not matter.
namespace dic::track {

using features::Stretch;

/// Numbers of points that are left to do after some waves.
struct RemainingPoints {
  std::int64_t front = 0;    ///< points that the next wave would refine
  std::int64_t untried = 0;  ///< points that are not measured and have a start on a lower step of the ladder
};

/// The operations of the refinement that a backend implements. step: index in kScoreLadder.
template <typename T>
concept RefinementOperations = requires(T& refinement) {
  /// True if islands are dropped before it is known whether the recovery has ended. They are restored if it
  /// has not.
  { T::kSpeculative } -> std::convertible_to<bool>;
  /// Forgets all results, and refines from the starts on the first step of the ladder.
  refinement.start_over();
  /// Refines the points that are not measured and have a start on this step. After the first recovery, step 0
  /// begins anew with starts that have changed.
  refinement.refine_starts(int{});
  /// Finds the points of the first wave: those beside points that were measured since the last recovery.
  refinement.begin_recovery();
  /// Does at most the given number of waves. Returns how many it did.
  { refinement.recover(int{}) } -> std::same_as<int>;
  /// Gives up the points that have certainly left the image (<dic/shared/departure_rules.hpp>), and starts
  /// counting the points that are left below this step; `remaining` returns the counts.
  refinement.count_remaining(int{});
  { refinement.remaining() } -> std::same_as<RemainingPoints>;
  /// Gives up small islands of points that agree only among themselves. The second function undoes that.
  refinement.drop_islands();
  refinement.restore_islands();
  /// Number of points that can be looked for and are not measured. The second function returns how many of
  /// these are likely to be in the image, which takes longer.
  { refinement.lost() } -> std::same_as<std::int64_t>;
  { refinement.lost_in_view() } -> std::same_as<std::int64_t>;
  /// Refines lost points from the motions of features of both images. Returns false if there are no such
  /// motions.
  { refinement.refine_from_features(Stretch{}) } -> std::same_as<bool>;
};

/// Does the waves that follow a step of the ladder. Calls recovered_now() after waves that may be the last.
/// Returns whether points remain for the next step; if not, islands were dropped.
template <RefinementOperations Refinement, std::invocable Recovered>
bool recover_from_neighbours(Refinement& refinement, int step, const Recovered& recovered_now) {
  refinement.begin_recovery();
  for (int waves = 0;;) {
    waves += refinement.recover(kMaxWaves - waves);
    recovered_now();
    refinement.count_remaining(step);
    if (Refinement::kSpeculative) refinement.drop_islands();
    const RemainingPoints left = refinement.remaining();
    const bool recovered = left.front == 0 || waves >= kMaxWaves;
    if (recovered && left.untried == 0) break;
    if (Refinement::kSpeculative) refinement.restore_islands();
    if (recovered) return true;
  }
  if (!Refinement::kSpeculative) refinement.drop_islands();
  return false;
}

/// Looks for lost points by features if that is worth it. Returns whether it found some; islands were then
/// dropped.
template <RefinementOperations Refinement>
bool find_by_features(Refinement& refinement, std::int64_t trackable, LostMemory& memory) {
  bool found = false;
  for (const Stretch stretch : {Stretch::small, Stretch::large}) {
    if (!worth_looking(refinement.lost(), memory.by_features, trackable) ||
        !many_lost(refinement.lost_in_view(), trackable))
      break;
    if (!refinement.refine_from_features(stretch)) continue;
    recover_from_neighbours(refinement, kLastStep, [] {});
    found = true;
  }
  const std::int64_t lost = refinement.lost();
  memory.by_features = most_lost(lost, trackable) ? 0 : lost;
  return found;
}

/// Finishes the refinement that start_over() began, and the search before it. outcome: of
/// finish_start_search(). Returns true if the search lost many points; only then can features of the images
/// help.
template <RefinementOperations Refinement, StartSearchOperations Search>
bool finish_refinement(Refinement& refinement, Search& search, NotFound outcome, LostMemory& memory) {
  const std::int64_t trackable = search.trackable();  // a sum over all GPUs: each of them asks
  bool features_untried = true;
  for (int step = 0;;) {
    const bool starts_untried = recover_from_neighbours(refinement, step, [&] {
      if (outcome.left_to_waves) search.leave_out_measured();
    });
    if (outcome.left_to_waves && search_for_rest(search, memory, outcome)) {
      refinement.refine_starts(step = 0);
      continue;
    }
    if (!outcome.many) memory.by_features = 0;
    if (outcome.many && features_untried && (step == kStepBeforeFeatures || !starts_untried)) {
      features_untried = false;
      // Features tell more than starts of low scores, which are then left out.
      if (find_by_features(refinement, trackable, memory)) return true;
    }
    if (!starts_untried) return outcome.many;
    refinement.refine_starts(++step);
  }
}

}  // namespace dic::track

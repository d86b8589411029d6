#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>

#include "track/algorithm/constants.hpp"

/// From starts to measured points, one page for all backends: points are refined from their own starts, the
/// highest scores first, and lost ones from the shape of a measured neighbour, wave by wave (the idea of
/// reliability-guided DIC, Pan 2009). A wave sees only the waves before, so that the order of points does not
/// matter.
namespace dic::track {

/// What is left to do after some waves.
struct RemainingPoints {
  std::int64_t front = 0;    ///< points that the next wave would refine
  std::int64_t untried = 0;  ///< points that are not measured and have a start on a lower step of the ladder
};

/// What a backend does of the refinement. step: index in kScoreLadder.
template <typename T>
concept RefinementOperations = requires(T& refinement) {
  /// Are islands dropped before it is known whether the recovery has ended? Then they are restored where it
  /// has not.
  { T::kSpeculative } -> std::convertible_to<bool>;
  /// Forgets all results, and refines from the starts on the first step of the ladder.
  refinement.start_over();
  /// Refines the points that are not measured and have a start on this step.
  refinement.refine_starts(int{});
  /// Finds the points of the first wave: those beside points that were measured since the last recovery.
  refinement.begin_recovery();
  /// Does at most so many waves. Returns how many.
  { refinement.recover(int{}) } -> std::same_as<int>;
  /// Begins to count what is left below this step; `remaining` gives the result.
  refinement.count_remaining(int{});
  { refinement.remaining() } -> std::same_as<RemainingPoints>;
  /// Gives up small islands of points that agree only among themselves; and undoes that.
  refinement.drop_islands();
  refinement.restore_islands();
};

/// Does the waves that follow a step of the ladder. Returns whether points remain for the next step; if not,
/// islands were dropped.
template <RefinementOperations Refinement>
bool recover_from_neighbours(Refinement& refinement, int step) {
  refinement.begin_recovery();
  for (int waves = 0;;) {
    waves += refinement.recover(kMaxWaves - waves);
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

/// What follows start_over().
template <RefinementOperations Refinement>
void finish_refinement(Refinement& refinement) {
  for (int step = 0; recover_from_neighbours(refinement, step);) refinement.refine_starts(++step);
}

}  // namespace dic::track

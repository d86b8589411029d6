#pragma once

#include <concepts>
#include <cstdint>

#include "track/algorithm/constants.hpp"

/// The search for starts, one page for all backends: a start is where the refinement of a point begins.
namespace dic::track {

/// The operations of the search that a backend implements. "All points" are those that can be looked for.
template <typename T>
concept StartSearchOperations = requires(T& search, const T& state) {
  /// True if the first search is queued before it is known how many points have no prediction. It is repeated
  /// in the rare case that there are many.
  { T::kSpeculative } -> std::convertible_to<bool>;
  /// True if the search range is chosen here; false if it is given (TrackOptions::search), which makes one
  /// search enough.
  { state.automatic() } -> std::same_as<bool>;
  /// True if a frame was measured before, so that the last positions of the points are known.
  { state.has_last() } -> std::same_as<bool>;
  /// Predicts all points where they, or a neighbour, were in the last frame; other points get no prediction.
  search.predict_from_last();
  /// Moves these predictions by the motion that most points share (<dic/shared/common_motion.hpp>).
  search.follow_common_motion();
  /// Predicts the points without a prediction by the image pyramid.
  search.predict_from_pyramid();
  /// Searches all points around their predictions.
  search.search_all();
  /// Searches the lost points again, or all of them, around predictions of the image pyramid; keeps the
  /// better of both results.
  search.search_again(bool{});
  /// From now on, points that the refinement has measured so far do not count as lost.
  search.leave_out_measured();
  /// Numbers of points that can be looked for, that had no prediction, and that were not found; the last two
  /// without points that the last frame excuses (see missed()).
  { search.trackable() } -> std::same_as<std::int64_t>;
  { search.unpredicted() } -> std::same_as<std::int64_t>;
  { search.lost() } -> std::same_as<std::int64_t>;
};

template <StartSearchOperations Search>
bool needs_pyramid(Search& search, const LostMemory& memory) {
  return search.automatic() && worth_looking(search.unpredicted(), memory.unpredicted, search.trackable());
}

template <StartSearchOperations Search>
void predict(Search& search) {
  search.predict_from_last();
  if (search.automatic() && search.has_last()) search.follow_common_motion();
}

/// The search of an ordinary frame.
template <StartSearchOperations Search>
void begin_start_search(Search& search, const LostMemory& memory) {
  predict(search);
  const bool known_later = Search::kSpeculative && search.has_last();
  if (!known_later && needs_pyramid(search, memory)) search.predict_from_pyramid();
  search.search_all();
}

/// Outcome of a search for the points that it did not find.
struct NotFound {
  /// Many points were not found, either by the pyramid: only features of the images can tell where they are.
  bool many = false;
  /// Many points were not found, but so few that measured neighbours mostly lead to them: search_for_rest()
  /// must be called after the first waves. `many` is then still unknown.
  bool left_to_waves = false;
  std::int64_t unpredicted = 0;  ///< number of points that had no prediction
  bool by_pyramid = false;       ///< the pyramid predicted these
};

/// Notes the outcome of a search in the memory, after the last use of the pyramid.
template <StartSearchOperations Search>
void note(Search& search, LostMemory& memory, NotFound& outcome, bool searched_again) {
  const std::int64_t lost = search.lost();
  memory.note(outcome.by_pyramid, outcome.unpredicted, searched_again, lost);
  outcome.many = many_lost(lost, search.trackable());
}

/// Completes the search, which only some frames need. Calls improved() if starts have changed.
template <StartSearchOperations Search, std::invocable Improved>
NotFound finish_start_search(Search& search, LostMemory& memory, const Improved& improved) {
  if (!search.automatic()) return {};
  const bool by_pyramid = search.has_last() && needs_pyramid(search, memory);
  if (Search::kSpeculative && by_pyramid) {
    predict(search);
    search.predict_from_pyramid();
    search.search_all();
  }
  const std::int64_t unpredicted = search.unpredicted(), lost = search.lost(), all = search.trackable();
  NotFound outcome{.unpredicted = unpredicted, .by_pyramid = by_pyramid};
  // The motion since the last frame may have been too large to follow.
  const bool is_missing =
      many_lost(lost, all) && unpredicted < all && worth_looking(lost, memory.not_found, all);
  outcome.left_to_waves = is_missing && !too_many_for_neighbours(lost, all);
  const bool again = is_missing && !outcome.left_to_waves;
  if (again) search.search_again(most_lost(lost, all));
  if (again || (Search::kSpeculative && by_pyramid)) improved();
  if (!outcome.left_to_waves) note(search, memory, outcome, again);
  return outcome;
}

/// Completes a search whose rest was left to the waves; their results must be counted already, see
/// leave_out_measured(). Returns true if the pyramid was needed, which may have changed starts.
template <StartSearchOperations Search>
bool search_for_rest(Search& search, LostMemory& memory, NotFound& outcome) {
  outcome.left_to_waves = false;
  const std::int64_t lost = search.lost(), all = search.trackable();
  const bool again = many_lost(lost, all) && worth_looking(lost, memory.not_found, all);
  if (again) search.search_again(false);
  note(search, memory, outcome, again);
  return again;
}

}  // namespace dic::track

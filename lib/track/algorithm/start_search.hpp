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
  /// Predicts the points without a prediction by the image pyramid.
  search.predict_from_pyramid();
  /// Searches all points around their predictions.
  search.search_all();
  /// Searches the lost points again, or all of them, around predictions of the image pyramid; keeps the
  /// better of both results.
  search.search_again(bool{});
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

/// The search of an ordinary frame.
template <StartSearchOperations Search>
void begin_start_search(Search& search, const LostMemory& memory) {
  search.predict_from_last();
  const bool known_later = Search::kSpeculative && search.has_last();
  if (!known_later && needs_pyramid(search, memory)) search.predict_from_pyramid();
  search.search_all();
}

/// Completes the search, which only some frames need. Calls improved() if starts have changed. Returns true
/// if many points were not found where the last frame (or, without one, the pyramid) predicted them.
template <StartSearchOperations Search, std::invocable Improved>
bool finish_start_search(Search& search, LostMemory& memory, const Improved& improved) {
  if (!search.automatic()) return false;
  const bool by_pyramid = search.has_last() && needs_pyramid(search, memory);
  if (Search::kSpeculative && by_pyramid) {
    search.predict_from_last();
    search.predict_from_pyramid();
    search.search_all();
  }
  const std::int64_t unpredicted = search.unpredicted(), lost = search.lost(), all = search.trackable();
  // The motion since the last frame may have been too large to follow.
  const bool again = many_lost(lost, all) && unpredicted < all && worth_looking(lost, memory.not_found, all);
  if (again) search.search_again(most_lost(lost, all));
  if (again || (Search::kSpeculative && by_pyramid)) improved();
  memory.note(by_pyramid, unpredicted, again, again ? search.lost() : lost);
  return many_lost(lost, all);
}

}  // namespace dic::track

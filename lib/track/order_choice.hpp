#pragma once

#include <dic/track.hpp>
#include <functional>
#include <memory>

#include "track/backend.hpp"

namespace dic::track {

/// Opens a backend for options.
using OpenBackend = std::function<std::unique_ptr<Backend>(const TrackOptions& options)>;

/// A backend that measures with order 1 and with order 2, by two others, and merges their results by
/// choose_order when a result is fetched.
std::unique_ptr<Backend> with_both_orders(const OpenBackend& open, const TrackOptions& options,
                                          ThreadPool& pool);

/// Replaces the values of `first`, of order 1, by those of `second`, of order 2, where the systematic error
/// of order 1 is larger than the noise that order 2 adds (docs/theory.md, Choice of the order). Where order 1
/// stays, its sigma contains what was found of that error. Fills in `order`. Strain is not touched. subset:
/// px.
void choose_order(Field& first, const Field& second, int subset,
                  SubsetWeights weights = SubsetWeights::uniform);

}  // namespace dic::track

#pragma once

#include <dic/track.hpp>
#include <memory>

#include "track/backend.hpp"

namespace dic::track {

/// Makes a backend that measures with order 1 and with order 2, by two others that `open` makes, and merges
/// their measurements by choose_order when they are fetched.
std::unique_ptr<TrackingBackend> with_both_orders(const BackendFactory& open, const TrackOptions& options,
                                                  const ImageView& image, const ReferenceAnalysis& analysis);

/// Replaces the values of `first`, of order 1, by those of `second`, of order 2, where the systematic error
/// of order 1 is larger than the noise that order 2 adds (docs/theory.md, Choice of the order). Where order 1
/// stays, its sigma includes the error that was found. Fills in `order`, and leaves the strain as it is.
/// subset: px.
void choose_order(Field& first, const Field& second, int subset,
                  SubsetWeights weights = SubsetWeights::uniform);

}  // namespace dic::track

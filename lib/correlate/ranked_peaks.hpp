#pragma once

#include <dic/peak_finder.hpp>
#include <span>
#include <vector>

#include "correlate/backend.hpp"

namespace dic::correlate {

/// A part of a request whose pairs follow those of the part before.
struct RequestPart {
  CorrelateRequest request;
  std::int64_t first = 0;  ///< number of its first pair in the whole request
};

/// Divides a request into parts of at most `most` pairs (at least one), so that their surfaces fit into
/// memory.
std::vector<RequestPart> parts_of(const CorrelateRequest& request, const Job& job, std::int64_t most);

/// The best peaks of one surface, best first, as many as `out` has; see PeakFinder.
/// elements: number of elements of the reference that count.
void pick_peaks(const float* surface, const Job& job, const PeakOptions& options, std::int64_t elements,
                std::span<RankedPeak> out);

/// Number of elements of each reference that count.
std::vector<std::int64_t> counting_elements(const Job& job);

}  // namespace dic::correlate

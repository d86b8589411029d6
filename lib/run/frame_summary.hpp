#pragma once

#include <dic/fields.hpp>
#include <dic/track_files.hpp>

namespace dic::run {

/// Counts, means and standard deviations of a field. length_factor: length unit per px.
FrameSummary summarize(const Field& field, double length_factor);

}  // namespace dic::run

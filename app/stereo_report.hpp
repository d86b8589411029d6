#pragma once

#include <dic/stereo_files.hpp>

/// Output of `dic stereo`.
namespace dic::app {

/// Prints what was measured and where the files are, on stdout. all_pairs: prints a line for every pair
/// instead of the first few and the last.
void print_summary(const StereoJob& job, const StereoSummary& summary, bool all_pairs);

/// Prints on stderr which pairs were skipped, and what makes positions uncertain.
void print_warnings(const StereoSummary& summary);

/// False if a pair was skipped.
bool all_were_processed(const StereoSummary& summary);

}  // namespace dic::app

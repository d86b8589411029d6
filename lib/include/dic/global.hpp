#pragma once

#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// Options of the global step.
struct GlobalOptions {
  bool enabled = false;
  /// Period, px, of a sinusoidal displacement that keeps nine tenths of its amplitude; shorter periods, and
  /// noise, are damped more. No value: chosen at every point from a few candidates, as the noise allows.
  std::optional<double> resolution;
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

/// The finest resolution (shortest period), px, of the global step for these subsets on a grid of this step.
DIC_API double least_resolution(const MeasuredSubsets& subsets, int step);

/// Replaces u, v, sigma_u and sigma_v of the `ok` points by those of a displacement field that is fitted to
/// all subsets together (augmented Lagrangian DIC after Yang & Bhattacharya, Experimental Mechanics 2019; see
/// docs/theory.md). Elements need all of their nodes `ok`: nothing is fitted across a gap, and a point
/// without elements stays as it is. Fills in Field::resolution, `subset_sigma_u` and `subset_sigma_v`; leaves
/// the strain unchanged. threads: 0 = one per core. Throws UsageError for invalid options and for resolutions
/// below least_resolution(). Returns draws of the remaining errors, for compute_strain().
DIC_API ErrorDraws global_step(Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                               int threads = 0);

/// The errors that global_step() returned for this field, computed again with the same options: equal to the
/// bit if `subset_sigma_u` and `subset_sigma_v` are unchanged. Takes nearly as long as global_step(). Throws
/// UsageError.
DIC_API ErrorDraws global_errors(const Field& field, const MeasuredSubsets& subsets,
                                 const GlobalOptions& options, int threads = 0);

}  // namespace dic

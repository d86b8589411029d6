#pragma once

#include <dic/fields.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// Options of the global step.
struct GlobalOptions {
  bool enabled = false;
  /// Period, px, of a displacement that keeps nine tenths of its amplitude: shorter ones are damped more,
  /// and so is noise. None = chosen at every point, among a few, by what the noise allows.
  std::optional<double> resolution;
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// The shortest resolution, px, that the global step offers for these subsets on a grid of this step.
double least_resolution(const MeasuredSubsets& subsets, int step);

/// Replaces u, v, sigma_u and sigma_v of the `ok` points by those of a displacement field that fits all
/// subsets together (augmented Lagrangian DIC after Yang & Bhattacharya, Experimental Mechanics 2019, see
/// docs/theory.md). Elements need all of their nodes `ok`: nothing is fitted across a gap, and a point
/// without elements stays as it is. Fills in `resolution` and `subset_sigma`. Strain is not touched. threads:
/// 0 = one per core. Throws UsageError for options with problems and resolutions below the least. Returns
/// errors as they may be left, for strain.
ErrorDraws global_step(Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                       int threads = 0);

/// The same errors of a field that the global step has made, with the same options: to the bit where its
/// `subset_sigma` is as it left it. Takes nearly as long. Throws UsageError.
ErrorDraws global_errors(const Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                         int threads = 0);

}  // namespace dic

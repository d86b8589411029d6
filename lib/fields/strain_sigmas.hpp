#pragma once

#include <dic/fields.hpp>

#include "core/parallel.hpp"

namespace dic::fields {

/// Computes sigma_exx, sigma_eyy and sigma_exy of compute_strain() alone, for a field whose strain is
/// computed later, in other coordinates. The other arrays stay empty.
StrainField compute_strain_sigmas(const Field& field, const StrainOptions& options, ThreadPool& pool,
                                  const MeasuredSubsets& subsets);
/// Does the same where errors are not those of single subsets, as after the global step.
StrainField compute_strain_sigmas(const Field& field, const StrainOptions& options, ThreadPool& pool,
                                  const ErrorDraws& errors);

}  // namespace dic::fields

#pragma once

#include <dic/fields.hpp>
#include <optional>

#include "core/parallel.hpp"

/// The public functions of these names, on the threads of a caller inside the library.
namespace dic::fields {

StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const std::optional<MeasuredSubsets>& subsets = {});
StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const ErrorDraws& errors);

/// Computes sigma_exx, sigma_eyy and sigma_exy of compute_strain() alone, for a field whose strain is
/// computed later, in other coordinates. The other arrays stay empty.
StrainField compute_strain_sigmas(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                                  const MeasuredSubsets& subsets);
/// Does the same where errors are not those of single subsets, as after the global step.
StrainField compute_strain_sigmas(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                                  const ErrorDraws& errors);

}  // namespace dic::fields

#pragma once

#include <dic/fields.hpp>
#include <optional>

#include "core/parallel.hpp"

/// The public functions of these names, on the threads of a caller inside the library.
namespace dic::fields {

/// Errors that sigmas of strain tell.
enum class StrainErrors { noise, noise_and_flattening };

StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const std::optional<MeasuredSubsets>& subsets = {},
                           StrainErrors errors = StrainErrors::noise_and_flattening);
StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const ErrorDraws& errors, const MeasuredSubsets& subsets);

}  // namespace dic::fields

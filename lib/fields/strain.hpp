#pragma once

#include <dic/fields.hpp>
#include <optional>

#include "core/parallel.hpp"

/// The public functions of these names, on the threads of a caller inside the library.
namespace dic::fields {

StrainField compute_strain(const Field& field, const StrainOptions& options, ThreadPool& pool,
                           const std::optional<MeasuredSubsets>& subsets = {});
StrainField compute_strain(const Field& field, const StrainOptions& options, ThreadPool& pool,
                           const ErrorDraws& errors);

}  // namespace dic::fields

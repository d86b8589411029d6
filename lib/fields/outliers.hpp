#pragma once

#include <cstdint>
#include <dic/fields.hpp>

#include "core/parallel.hpp"

namespace dic::fields {

/// dic::mark_outliers() on the threads of a caller inside the library.
std::int64_t mark_outliers(Field& field, const OutlierOptions& options, core::ThreadPool& pool);

}  // namespace dic::fields

#pragma once

#include <dic/global.hpp>

#include "core/parallel.hpp"

/// The public functions of these names, on the threads of a caller inside the library.
namespace dic::global {

ErrorDraws global_step(Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                       core::ThreadPool& pool);
ErrorDraws global_errors(const Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                         core::ThreadPool& pool);

}  // namespace dic::global

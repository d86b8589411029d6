#pragma once

#include <dic/kernels/ncc.hpp>
#include <string>
#include <string_view>

#include "correlate/backend.hpp"

/// The parts of the CUDA backend that need no GPU: its variants, what they support, and the planner.
namespace dic::correlate::cuda {

/// The registered variant of this name.
const kernels::NccVariant& variant_named(std::string_view name);
/// A job without its data, which is enough to ask a variant whether it supports the job.
kernels::NccJob job_of(const CorrelateShape& shape);

const std::vector<CorrelateVariant>& variants();
/// Why a variant does not support a job of this shape, or not on this machine: one sentence, or empty.
std::string unsupported_reason(std::string_view variant, const CorrelateShape& shape);
CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties& device);

}  // namespace dic::correlate::cuda

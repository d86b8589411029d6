#pragma once

#include <dic/kernels/ncc.hpp>
#include <string>
#include <string_view>

#include "correlate/backend.hpp"

/// What the CUDA backend knows without touching a GPU: its variants, what they can do, and which one to take.
namespace dic::correlate::cuda {

/// The registered variant of this name.
const kernels::NccVariant& variant_named(std::string_view name);
/// The job without its data: enough to ask a variant whether it can do it.
kernels::NccJob job_of(const CorrelateShape& shape);

const std::vector<CorrelateVariant>& variants();
/// Why a variant does not support a job of this shape, or this machine: one sentence, or empty.
std::string unsupported_reason(std::string_view variant, const CorrelateShape& shape);
CorrelatePlan plan(const CorrelateShape& shape, const DeviceProperties& device);

}  // namespace dic::correlate::cuda

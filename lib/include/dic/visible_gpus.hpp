#pragma once

#include <dic/export.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// The GPUs as the environment variable CUDA_VISIBLE_DEVICES names them; nothing without that variable.
DIC_API std::optional<std::vector<std::string>> visible_gpus();

/// Sets CUDA_VISIBLE_DEVICES so that CUDA sees no more GPUs than `device` ("cuda", "cuda:1", "auto", ...)
/// needs, because the driver takes 0.25 s to start each of them (two H200, driver 580.159.04, 2026-11-27).
/// Numbers of GPUs keep their meaning. For programs that use one device: call it before CUDA is used and
/// before threads are started. Throws UsageError for a text that is no device, but for "auto".
DIC_API void hide_unused_gpus(const std::string& device);

}  // namespace dic

#pragma once

#include <nlohmann/json.hpp>

#include "bench/bench.hpp"

namespace dic::bench {

/// Device, processor and build of this run. Throws UsageError, DeviceError.
Machine describe_machine(const Options& options, const std::string& command);

nlohmann::ordered_json json_of(const Machine& machine);
/// Reads a Machine from JSON. Throws nlohmann::json::exception.
Machine machine_from(const nlohmann::ordered_json& json);

}  // namespace dic::bench

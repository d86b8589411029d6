#pragma once

#include <string>

namespace dic::run {

/// Name of the machine; empty if the system does not tell.
std::string host_name();
/// Local time as "2026-11-24T21:05:00+0000".
std::string local_time();

}  // namespace dic::run

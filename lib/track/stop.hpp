#pragma once

#include <dic/error.hpp>
#include <stop_token>

namespace dic::track {

/// Throws Cancelled if a stop was requested.
inline void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("The measurement was cancelled.");
}

}  // namespace dic::track

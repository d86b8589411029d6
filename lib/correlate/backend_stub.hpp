#pragma once

#include <dic/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "correlate/backend.hpp"

namespace dic::correlate {

/// Stands in for a backend that is not part of the build: it has no variants, and opening it throws
/// DeviceError with the message.
template <const char* kMessage>
BackendEntry missing_backend(const char* name) {
  return {
      name,
      []() -> const std::vector<CorrelateVariant>& {
        static const std::vector<CorrelateVariant> none;
        return none;
      },
      [](std::string_view, const CorrelateShape&) { return std::string(kMessage); },
      [](const CorrelateShape&, const DeviceProperties&) -> CorrelatePlan { throw DeviceError(kMessage); },
      [](std::span<const int>, core::ThreadPool&) -> std::unique_ptr<Backend> {
        throw DeviceError(kMessage);
      }};
}

}  // namespace dic::correlate

#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

namespace dic::match {

/// Ends a search: by an exception when the caller asks, or quietly when its time is over.
class SearchLimit {
 public:
  SearchLimit(std::stop_token stop, int timeout_ms);
  /// True once the time is over. Throws Cancelled.
  bool is_over() const;
  const std::stop_token& stop() const { return stop_; }

 private:
  std::stop_token stop_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace dic::match

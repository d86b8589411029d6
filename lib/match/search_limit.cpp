#include "match/search_limit.hpp"

#include <dic/error.hpp>

namespace dic::match {

SearchLimit::SearchLimit(std::stop_token stop, int timeout_ms) : stop_(std::move(stop)) {
  if (timeout_ms > 0) end_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
}

bool SearchLimit::is_over() const {
  if (stop_.stop_requested()) throw Cancelled("Template matching was cancelled.");
  return end_ && std::chrono::steady_clock::now() >= *end_;
}

}  // namespace dic::match

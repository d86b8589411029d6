#pragma once

#include <chrono>
#include <dic/track.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

namespace dic::track {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  /// Seconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(begin_, now)).count();
  }
  StageSpan span(const char* stage) const { return {stage, begin_, std::chrono::steady_clock::now()}; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Adds consecutive stages, each with its name and seconds.
inline void add_spans(std::vector<StageSpan>& spans, StageSpan::Time begin,
                      std::initializer_list<std::pair<const char*, double>> stages) {
  for (const auto& [stage, seconds] : stages) {
    const auto end =
        begin + std::chrono::duration_cast<StageSpan::Time::duration>(std::chrono::duration<double>(seconds));
    spans.push_back({stage, begin, end});
    begin = end;
  }
}

}  // namespace dic::track

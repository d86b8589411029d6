#include "help/suggestion.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dic::app {
namespace {

/// Number of letters to insert, delete, replace or swap with a neighbour to turn one word into the other
/// (optimal string alignment distance).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

/// How unlike a name is: a name that begins with the typed word, or the reverse ("--subset-size"), is as like
/// as one with a wrong letter.
std::size_t unlikeness(const std::string& typed, const std::string& name) {
  constexpr std::size_t kLeastShared = 4;  // letters
  const std::size_t shared = std::min(typed.size(), name.size());
  const bool begins = shared >= kLeastShared && typed.compare(0, shared, name, 0, shared) == 0;
  return begins ? 1 : distance(typed, name);
}

}  // namespace

std::string suggestion(const std::string& typed, const std::vector<std::string>& names) {
  const auto nearest =
      std::ranges::min_element(names, {}, [&](const std::string& name) { return unlikeness(typed, name); });
  if (nearest == names.end()) return {};
  const std::size_t most = std::max<std::size_t>(1, typed.size() / 3);
  return unlikeness(typed, *nearest) <= most ? " (did you mean " + *nearest + "?)" : "";
}

}  // namespace dic::app

#include "bench/toml_keys.hpp"

#include <algorithm>
#include <dic/error.hpp>

namespace dic::bench {
namespace {

constexpr int kMostParts = 16;
constexpr std::string_view kNotInKeys = "\n\r=,[]{}";

/// Returns the place behind the string or comment that begins at `at`. A string of one line ends with the
/// line.
std::size_t behind(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size());
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool is_long = text.substr(at, 3) == three;
  for (std::size_t k = at + (is_long ? 3 : 1); k < text.size(); ++k) {
    if (text[k] == '\\' && quote == '"')
      ++k;
    else if (!is_long && (text[k] == quote || text[k] == '\n'))
      return text[k] == quote ? k + 1 : k;
    else if (is_long && text.substr(k, 3) == three)
      return std::min(text.find_first_not_of(quote, k + 3), std::min(k + 5, text.size()));
  }
  return text.size();
}

}  // namespace

void refuse_deep_keys(std::string_view text, const std::string& where) {
  int parts = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'' || c == '#') {
      at = behind(text, at);
      continue;
    }
    if (kNotInKeys.find(c) != std::string_view::npos) parts = 1;
    if (c == '.') ++parts;
    if (parts > kMostParts)
      throw UsageError("A key in " + where + " has more than " + std::to_string(kMostParts) +
                       " parts with dots between them: check line " +
                       std::to_string(std::count(text.begin(), text.begin() + at, '\n') + 1) + ".");
    ++at;
  }
}

}  // namespace dic::bench

#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace dic::image {

/// The natural order of names: numbers count as numbers, with a sign ("img_-0001" before "img_0000") and with
/// decimals ("0.25kN" before "0.5kN").
///
/// A single name does not always tell. By itself, "-" is a sign at the start or after "_", "=", "(" or "[",
/// and "." begins decimals where a unit follows. All names together tell more: "T-10" is negative beside
/// "T0", and "1.5" has decimals beside "1.25", but not beside "1.4" and "1.6" to "1.12".
class FrameOrder {
 public:
  /// The order of names of which nothing else is known.
  FrameOrder() = default;
  explicit FrameOrder(std::span<const std::string> names);

  bool less(std::string_view a, std::string_view b) const;

 private:
  struct Token;
  Token next(std::string_view name, std::size_t at) const;

  /// Text before the number, in which each number is replaced by "0".
  std::set<std::string, std::less<>> signed_after_, decimals_after_;
};

}  // namespace dic::image

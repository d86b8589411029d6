#include "run/frame_pairs.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

namespace dic::run {
namespace {

/// The numbers in a name without its ending, without leading zeros.
std::vector<std::string> numbers_in(const std::string& name) {
  std::vector<std::string> numbers;
  bool in_number = false;
  for (const char c : std::filesystem::path(name).stem().string()) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_digit && !in_number) numbers.emplace_back();
    if (is_digit) numbers.back() += c;
    in_number = is_digit;
  }
  for (std::string& number : numbers)
    number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
  return numbers;
}

/// How the numbers of a pair differ: the two values of each number that is not the same in both names.
using Difference = std::vector<std::string>;

/// No value if the names have different counts of numbers, as "left_3.png" and "cam2_3.png".
std::optional<Difference> difference_of(const std::string& left, const std::string& right) {
  const std::vector<std::string> a = numbers_in(left), b = numbers_in(right);
  if (a.size() != b.size()) return {};
  Difference difference;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k] != b[k]) difference.push_back(a[k] + "," + b[k]);
  return difference;
}

}  // namespace

std::string mismatch_of(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::optional<Difference> first;
  for (std::size_t k = 0; k < std::min(left.size(), right.size()); ++k) {
    const std::optional<Difference> difference = difference_of(left[k], right[k]);
    if (!difference) continue;
    if (!first) first = difference;
    if (*difference == *first) continue;
    return "The names of pair " + std::to_string(k + 1) + " do not fit like those before: " + left[k] +
           " and " + right[k] +
           " may show different moments; images are paired by their order, so check that none is missing.";
  }
  return {};
}

}  // namespace dic::run

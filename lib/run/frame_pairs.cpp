#include "run/frame_pairs.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

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

/// Compares numbers without leading zeros, of any length.
std::weak_ordering compare(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

}  // namespace

void PairNames::add(const std::string& left, const std::string& right) {
  ++pairs_;
  Numbers numbers{numbers_in(left), numbers_in(right)};
  if (numbers.left.size() != numbers.right.size()) return;  // as "left_3.png" and "cam2_3.png"
  if (!first_) first_ = numbers;
  if (!mismatch_.empty() || difference_of(numbers) == difference_of(*first_)) return;
  mismatch_ = "The names of pair " + std::to_string(pairs_) + " do not fit like those before: " + left +
              " and " + right +
              " may show different moments; images are paired by their order, so check that none is missing.";
}

std::weak_ordering PairNames::order_of(const std::string& left, const std::string& right) const {
  const Numbers numbers{numbers_in(left), numbers_in(right)};
  if (!first_ || numbers.left.size() != first_->left.size() || numbers.right.size() != first_->left.size())
    return std::weak_ordering::equivalent;
  for (std::size_t k = 0; k < numbers.left.size(); ++k)
    if (first_->left[k] == first_->right[k])
      if (const auto order = compare(numbers.left[k], numbers.right[k]); order != 0) return order;
  return std::weak_ordering::equivalent;
}

bool PairNames::tell() const { return first_ && difference_of(*first_).size() < first_->left.size(); }

PairNames::Difference PairNames::difference_of(const Numbers& numbers) {
  Difference difference;
  for (std::size_t k = 0; k < numbers.left.size(); ++k)
    if (numbers.left[k] != numbers.right[k]) difference.push_back(numbers.left[k] + "," + numbers.right[k]);
  return difference;
}

}  // namespace dic::run

#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace dic::run {

/// Compares the names of left and right images that belong together by their order. Numbers in which the
/// names of a pair differ are those of the cameras if they are the same in all pairs; any other difference is
/// a mismatch.
class PairNames {
 public:
  /// Takes the names of the next pair.
  void add(const std::string& left, const std::string& right);
  /// A sentence about the first mismatch; empty if there is none.
  const std::string& mismatch() const { return mismatch_; }

  /// Which of two images was taken first, by the numbers that were equal in the first pair; `equal` if they
  /// tell nothing: the names have other counts of numbers, or none was equal.
  std::weak_ordering order_of(const std::string& left, const std::string& right) const;
  /// True if names tell which images belong together.
  bool tell() const;

 private:
  /// How the numbers of a pair differ: the two values of each number that is not the same in both names.
  using Difference = std::vector<std::string>;

  /// The numbers in both names of a pair, in their order.
  struct Numbers {
    std::vector<std::string> left, right;
  };

  static Difference difference_of(const Numbers& numbers);

  std::optional<Numbers> first_;  ///< of the first pair with as many numbers on both sides
  std::string mismatch_;
  std::size_t pairs_ = 0;
};

}  // namespace dic::run

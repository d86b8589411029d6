#include "run/image_pairs.hpp"

#include <algorithm>
#include <compare>
#include <dic/error.hpp>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "run/read_ahead.hpp"

namespace dic::run {
namespace {

constexpr const char* kBetweenStamps = ", ";

/// The name of an image; nothing past the end. Where frames arrive, waits for it.
std::optional<std::string> name_in(const FrameSource& source, std::int64_t i) {
  if (const auto count = source.count(); count && i >= *count) return {};
  try {
    return source.name(i);
  } catch (const std::out_of_range&) {
    return {};
  }
}

/// Reads an image, or adds to `error` why that is impossible. False past the end of a video.
bool read_image_of(FrameSource& source, std::int64_t i, StampedImage& read, std::string& error) {
  try {
    read.stamp = source.stamp(i);
    read = read_unchanged(source, i);
  } catch (const FileError& failure) {
    error += (error.empty() ? "" : " ") + std::string(failure.what());
  } catch (const std::out_of_range&) {
    return false;
  }
  return true;
}

[[noreturn]] void refuse_different_numbers(const char* shorter, std::int64_t images) {
  throw UsageError("The two cameras have different numbers of images: the " + std::string(shorter) +
                   " one ends after " + std::to_string(images) +
                   "; each left image needs the right one of the same moment.");
}

}  // namespace

ImagePairs::ImagePairs(std::unique_ptr<FrameSource> left, std::unique_ptr<FrameSource> right, Pairing pairing)
    : left_(std::move(left)), right_(std::move(right)), pairing_(pairing) {}

std::optional<std::int64_t> ImagePairs::count() const {
  const auto left = left_->count(), right = right_->count();
  if (!left || !right) return {};
  if (*left != *right)
    throw UsageError("There are " + std::to_string(*left) + " left and " + std::to_string(*right) +
                     " right images: each left image needs the right one of the same moment.");
  return left;
}

ImagePairs::Pair ImagePairs::pair(std::int64_t k) const {
  const std::lock_guard lock(mutex_);
  return pairs_.at(static_cast<std::size_t>(k));
}

std::string ImagePairs::left_name(std::int64_t k) const {
  const std::int64_t i = pair(k).left;
  return i == kMissing ? "" : left_->name(i);
}

std::string ImagePairs::right_name(std::int64_t k) const {
  const std::int64_t i = pair(k).right;
  return i == kMissing ? "" : right_->name(i);
}

std::string ImagePairs::stamp(std::int64_t k) const {
  const Pair at = pair(k);
  return (at.left == kMissing ? "" : left_->stamp(at.left)) + kBetweenStamps +
         (at.right == kMissing ? "" : right_->stamp(at.right));
}

bool ImagePairs::reach(std::int64_t k) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (k < std::ssize(pairs_)) return true;
    }
    if (!next_pair()) return false;
  }
}

/// Finds the next pair. An image whose partner is missing forms a pair of its own.
std::optional<ImagePairs::Pair> ImagePairs::next_pair() {
  const std::optional<std::string> left = name_in(*left_, next_left_), right = name_in(*right_, next_right_);
  if (!left && !right) return {};
  if (pairing_ == Pairing::by_order && left.has_value() != right.has_value())
    refuse_different_numbers(left ? "right" : "left", std::min(next_left_, next_right_));
  const std::lock_guard lock(mutex_);
  const bool by_name = pairing_ == Pairing::by_name && left && right && !pairs_.empty();
  const auto order = by_name ? names_.order_of(*left, *right) : std::weak_ordering::equivalent;
  const Pair found{left && order <= 0 ? next_left_++ : kMissing,
                   right && order >= 0 ? next_right_++ : kMissing};
  if (found.left != kMissing && found.right != kMissing) names_.add(*left, *right);
  return pairs_.emplace_back(found);
}

std::string ImagePairs::problem_of(const Pair& pair) const {
  if (pair.right == kMissing)
    return left_->name(pair.left) + " has no image of the right camera: it was left out.";
  if (pair.left == kMissing)
    return right_->name(pair.right) + " has no image of the left camera: it was left out.";
  return {};
}

std::optional<ImagePair> ImagePairs::read(std::int64_t k) {
  const Pair at = pair(k);
  ImagePair pair{k, {}, {}, stamp(k), problem_of(at)};
  if (!pair.error.empty()) return pair;
  StampedImage left, right;
  const bool has_left = read_image_of(*left_, at.left, left, pair.error),
             has_right = read_image_of(*right_, at.right, right, pair.error);
  if (has_left != has_right) refuse_different_numbers(has_left ? "right" : "left", k);
  if (!has_left) return {};
  pair.left = std::move(left.image), pair.right = std::move(right.image);
  pair.stamp = left.stamp + kBetweenStamps + right.stamp;
  return pair;
}

Image ImagePairs::read(std::int64_t k, int camera) {
  const Pair at = pair(k);
  return camera == 0 ? left_->read(at.left) : right_->read(at.right);
}

std::string ImagePairs::mismatch() const {
  const std::lock_guard lock(mutex_);
  if (pairing_ == Pairing::by_name && names_.mismatch().empty() && !names_.tell() && pairs_.size() > 1)
    return "The names of the two folders have no numbers in common, so images were paired by the order of "
           "their arrival: check that none is missing.";
  return names_.mismatch();
}

PairReader::PairReader(ImagePairs& pairs, std::int64_t first, std::int64_t most)
    : pairs_(pairs), index_(first), most_(most) {
  request();
}

std::optional<ImagePair> PairReader::next() {
  if (!pending_.valid()) return {};
  std::optional<ImagePair> pair = pending_.get();
  if (pair) request();
  return pair;
}

void PairReader::request() {
  pending_ = std::async(std::launch::async, [this, k = index_++]() -> std::optional<ImagePair> {
    if ((most_ > 0 && k >= most_) || !pairs_.reach(k)) return {};
    return pairs_.read(k);
  });
}

}  // namespace dic::run

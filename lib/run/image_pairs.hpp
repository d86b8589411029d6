#pragma once

#include <cstdint>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "run/frame_pairs.hpp"

namespace dic::run {

/// Images of both cameras at one moment, or why they could not be read.
struct ImagePair {
  std::int64_t index = 0;
  Image left, right;
  std::string stamp;  ///< stamps of both files that were read
  std::string error;  ///< one sentence or more; empty if there are images
};

/// How the images of both cameras form pairs.
enum class Pairing : std::uint8_t {
  by_order,  ///< the k-th left and the k-th right image; a different number of images is an error
  by_name    ///< by the numbers in their names, if these tell: an image may lack its partner
};

/// The images of two cameras as pairs. Its functions may be called by several threads.
class ImagePairs {
 public:
  ImagePairs(std::unique_ptr<FrameSource> left, std::unique_ptr<FrameSource> right, Pairing pairing);

  /// Number of pairs, if both sources know theirs. Throws UsageError if these differ.
  std::optional<std::int64_t> count() const;
  /// Names of a pair that has been reached; empty for an image that is missing.
  std::string left_name(std::int64_t k) const;
  std::string right_name(std::int64_t k) const;
  std::string stamp(std::int64_t k) const;
  /// Moves on to a pair; pairs are reached in order. False past the end; where frames arrive, waits for it.
  /// Throws UsageError if one camera has more images than the other.
  bool reach(std::int64_t k);
  /// Reads a pair; says in it what cannot be read. Nothing past the end of a video that tells no length.
  /// Throws UsageError if one camera has more images than the other.
  std::optional<ImagePair> read(std::int64_t k);
  /// Reads one image of a pair, of the left (0) or the right (1) camera. Throws FileError.
  Image read(std::int64_t k, int camera);
  /// The left images, with the index of the one in pair k.
  FrameSource& left() { return *left_; }
  std::int64_t left_index(std::int64_t k) const { return pair(k).left; }
  /// A sentence if names of left and right images do not fit; else empty.
  std::string mismatch() const;

 private:
  /// Indices of the images of a pair in their sources; kMissing where there is none.
  struct Pair {
    std::int64_t left = 0, right = 0;
  };
  static constexpr std::int64_t kMissing = -1;

  Pair pair(std::int64_t k) const;
  std::optional<Pair> next_pair();
  std::string problem_of(const Pair& pair) const;

  std::unique_ptr<FrameSource> left_, right_;
  Pairing pairing_;
  std::int64_t next_left_ = 0, next_right_ = 0;  ///< used by `reach` alone
  mutable std::mutex mutex_;                     ///< guards the members below
  std::vector<Pair> pairs_;                      ///< those that were reached
  PairNames names_;
};

/// Reads pairs in order, the next one while the caller works.
class PairReader {
 public:
  /// first: index of the first pair. most: number of pairs after which it ends, counted from the first one of
  /// all; 0 = never. `pairs` must outlive this object.
  PairReader(ImagePairs& pairs, std::int64_t first, std::int64_t most);
  /// Waits for the next pair. Nothing at the end.
  std::optional<ImagePair> next();

 private:
  void request();

  ImagePairs& pairs_;
  std::int64_t index_, most_;
  std::future<std::optional<ImagePair>> pending_;
};

}  // namespace dic::run

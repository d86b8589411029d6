#pragma once

#include <cstdint>
#include <vector>

#include "bench/bench.hpp"

namespace dic::bench {

/// A stream of random numbers that is the same on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// A number in 0 .. count - 1, count >= 1.
  std::int64_t below(std::int64_t count);

 private:
  std::uint64_t state_;
};

/// Share of the elements that the masks, diagonal stripes, do not exclude.
constexpr double kShareThatCounts = 0.75;

/// The data of a case: integers over the whole range of their bits (i32: 16 bits), floats in [-1, 1).
class Inputs {
 public:
  /// Throws UsageError for an impossible case: no pair, or images too small for the windows.
  Inputs(const Case& shape, std::uint64_t seed);
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  /// The request; it refers to this object.
  CorrelateRequest request() const;

 private:
  struct Side {
    std::vector<Image> images;
    std::vector<ImageView> views;
    std::vector<PatchPosition> positions;
    Size size;

    Patches matrices() const { return {views, positions, size}; }
  };

  void pack(Side& side, std::int64_t count, Random& random) const;
  void place_in_images(Random& random);

  Case shape_;
  Side reference_, search_;
  std::vector<Image> masks_;  ///< masks of the references' images
  std::vector<ImageView> mask_views_;
};

}  // namespace dic::bench

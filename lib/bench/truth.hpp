#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/bench.hpp"

namespace dic::bench {

/// Result of a comparison.
struct Check {
  double max_difference = 0;  ///< relative, see Row::max_difference; NaN if a value is NaN
  std::int64_t compared = 0;
  bool ok = true;
};

/// The expected result of a request, computed from the definition in float64 without the library, for all
/// pairs and shifts if that is quick, otherwise for a random sample of both.
class Truth {
 public:
  Truth(const CorrelateRequest& request, std::uint64_t seed);

  Check check(const Surfaces& surfaces) const;
  Check check(std::span<const Peak> peaks) const;

 private:
  /// One pair with the elements of both sides; NaN where a window reaches outside its image or a mask
  /// excludes an element.
  struct Sample {
    std::int64_t pair = 0;
    std::vector<double> ref, window;
    double norm = 1;                   ///< scale of relative differences
    std::vector<std::int64_t> shifts;  ///< dy * nx + dx, counted from the rectangle's corner
    std::vector<double> values;        ///< expected values at those shifts
  };
  class Comparison;

  Sample make_sample(const CorrelateRequest& request, std::int64_t pair) const;
  bool is_defined(const Sample& sample, int dy, int dx) const;
  /// The expected score at a shift, or the documented value if it is undefined.
  double value(const Sample& sample, int dy, int dx) const;
  bool is_defined_at(const Sample& sample, std::int64_t shift) const;
  int dy_of(std::int64_t shift) const;
  int dx_of(std::int64_t shift) const;
  void compare_peak(const Sample& sample, const Peak& peak, Comparison& comparison) const;

  Criterion criterion_;
  ScalarType type_;
  int ref_h_, ref_w_, search_h_, search_w_;
  Shifts shifts_;
  std::vector<Sample> samples_;
};

}  // namespace dic::bench

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/bench.hpp"

namespace dic::bench {

/// What a comparison found.
struct Check {
  double max_difference = 0;  ///< relative, see Row::max_difference; NaN where a value is
  std::int64_t compared = 0;
  bool ok = true;
};

/// What a request should give, from the definition in float64 and nothing of the library. All pairs and
/// shifts where that is quick, else a random sample of both.
class Truth {
 public:
  Truth(const CorrelateRequest& request, std::uint64_t seed);

  Check check(const Surfaces& surfaces) const;
  Check check(std::span<const Peak> peaks) const;

 private:
  /// One pair with the elements of both sides; NaN where a window reaches outside its image, or an element
  /// of a reference does not count.
  struct Sample {
    std::int64_t pair = 0;
    std::vector<double> ref, window;
    double norm = 1;                   ///< what differences are relative to
    std::vector<std::int64_t> shifts;  ///< dy * nx + dx, counted from the rectangle's corner
    std::vector<double> values;        ///< at those shifts
  };
  class Comparison;

  Sample make_sample(const CorrelateRequest& request, std::int64_t pair) const;
  bool is_defined(const Sample& sample, int dy, int dx) const;
  /// The measure at a shift; what the library promises where it is not defined.
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

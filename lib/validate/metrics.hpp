#pragma once

#include <array>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/synth.hpp>
#include <optional>
#include <vector>

namespace dic::validation {

/// An error above this is gross, whatever sigma says, px; of a truth that is not known so well, kSigmas of
/// its standard deviation.
inline constexpr double kGross = 0.5;
/// An error above so many predicted standard deviations is false.
inline constexpr double kSigmas = 5;

/// A measured point and what is true there.
struct JudgedPoint {
  Status status = Status::masked;
  double u = 0, v = 0, sigma_u = 0, sigma_v = 0;  ///< measured, px
  double true_u = 0, true_v = 0;                  ///< px
  double truth_error = 0;                         ///< standard deviation of the truth itself, px
  Measurable measurable = Measurable::yes;
  bool expected = true;    ///< at least half of its subset is seen in both images: else no loss counts
  bool in_region = true;   ///< its error counts in the statistics
  bool near_edge = false;  ///< its subset holds two motions
  std::array<float, 3> strain_error{};  ///< of exx, eyy, exy
  bool has_strain = false;
};

/// Mean and spread of one quantity.
class Moments {
 public:
  void add(double value);
  std::int64_t count() const { return count_; }
  double mean() const;
  double sd() const;
  double rms() const;

 private:
  std::int64_t count_ = 0;
  double sum_ = 0, square_ = 0;
};

/// How good the measurement of one frame, or of all frames of a case, is. Lengths in px. What no point says
/// is NaN.
struct Metrics {
  std::int64_t points = 0, ok = 0;
  std::array<std::int64_t, kStatusCount> statuses{};
  std::int64_t measurable = 0, lost = 0;  ///< points that can be measured; of them not ok
  /// ok, but: nothing is there to be measured; off by more than kGross; by more than kSigmas sigma. A point
  /// may be several of these; false_ok counts it once.
  std::int64_t hidden_ok = 0, gross = 0, beyond_sigma = 0, false_ok = 0;
  double worst = 0;  ///< the largest error of an ok point that can be measured

  /// Over the ok points of the region whose error is not gross: mean error, its standard deviation, its root
  /// mean square, the predicted standard deviation (root mean square), and the root mean square of error /
  /// predicted.
  std::array<double, 2> bias{}, sd{}, rmse{}, sigma{}, scatter{};
  std::int64_t judged = 0;
  std::int64_t near_edge = 0, near_edge_right = 0;  ///< points beside a crack or edge; ok within 3 sigma
  std::optional<std::array<double, 2>> strain;      ///< largest mean error of exx, eyy, exy, and sd

  double false_share() const;  ///< of the ok points; 0 where none is ok
  double lost_share() const;   ///< of the measurable points; 0 where there are none
  double largest_bias() const;
  double largest_sd() const;
  double largest_rmse() const;
  double mean_sigma() const;    ///< of both components, root mean square
  double mean_scatter() const;  ///< of both components, root mean square
};

/// The metrics of points that come one by one.
class Judge {
 public:
  void add(const JudgedPoint& point);
  Metrics metrics() const;

 private:
  void add_error(const JudgedPoint& point);

  Metrics counts_;
  std::array<Moments, 2> error_, sigma_, ratio_;
  std::array<Moments, 3> strain_;
};

/// Of all frames of a case: counts are summed; of bias, sd and RMSE the largest; sigma and scatter over all
/// points.
Metrics combined(const std::vector<Metrics>& frames);

}  // namespace dic::validation

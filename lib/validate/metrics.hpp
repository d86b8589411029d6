#pragma once

#include <array>
#include <cstdint>
#include <dic/fields.hpp>
#include <dic/synth.hpp>
#include <optional>
#include <vector>

namespace dic::validation {

/// An error above this, px, is gross regardless of sigma; if the truth is less certain, the limit is kSigmas
/// of its standard deviation.
inline constexpr double kGross = 0.5;
/// An error above this number of predicted standard deviations is false.
inline constexpr double kSigmas = 5;

/// A measured point and its true displacement.
struct JudgedPoint {
  Status status = Status::masked;
  double u = 0, v = 0, sigma_u = 0, sigma_v = 0;  ///< measured, px
  double true_u = 0, true_v = 0;                  ///< px
  double truth_error = 0;                         ///< standard deviation of the truth itself, px
  Measurable measurable = Measurable::yes;
  bool expected = true;    ///< at least half of its subset is visible in both images; only then a loss counts
  bool in_region = true;   ///< its error counts in the statistics
  bool near_edge = false;  ///< its subset holds two motions
  std::array<float, 3> strain_error{};  ///< errors of exx, eyy, exy
  std::array<float, 3> strain_sigma{};  ///< their predicted standard deviations
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

/// Quality of the measurement of one frame, or of all frames of a case. Lengths in px. Values without points
/// are NaN.
struct Metrics {
  std::int64_t points = 0, ok = 0;
  std::array<std::int64_t, kStatusCount> statuses{};
  /// points that can be measured, and those among them that are not ok
  std::int64_t measurable = 0, lost = 0;
  /// Numbers of false `ok` points: hidden_ok = nothing can be measured there, gross = off by more than
  /// kGross, beyond_sigma = off by more than kSigmas sigma. A point may be several of these; false_ok counts
  /// it once.
  std::int64_t hidden_ok = 0, gross = 0, beyond_sigma = 0, false_ok = 0;
  double worst = 0;  ///< the largest error of an ok point that can be measured

  /// Statistics of u and v over the ok points of the region without gross errors: mean error, its standard
  /// deviation, its root mean square, the predicted standard deviation (root mean square), and the root mean
  /// square of error / predicted.
  std::array<double, 2> bias{}, sd{}, rmse{}, sigma{}, scatter{};
  std::int64_t judged = 0;
  /// points beside a crack or edge, and those among them that are ok within 3 sigma
  std::int64_t near_edge = 0, near_edge_right = 0;
  std::optional<std::array<double, 2>> strain;  ///< largest mean error and largest sd of exx, eyy, exy
  /// Largest root mean square of error / predicted of exx, eyy, exy.
  std::optional<double> strain_scatter;

  double false_share() const;  ///< Share of false points among the ok points; 0 if none is ok.
  double lost_share() const;   ///< Share of lost points among the measurable points; 0 if there are none.
  double largest_bias() const;
  double largest_sd() const;
  double largest_rmse() const;
  double mean_sigma() const;    ///< Root mean square sigma of both components.
  double mean_scatter() const;  ///< Root mean square scatter of both components.
};

/// Computes metrics from points that are added one by one.
class Judge {
 public:
  void add(const JudgedPoint& point);
  Metrics metrics() const;

 private:
  void add_error(const JudgedPoint& point);

  Metrics counts_;
  std::array<Moments, 2> error_, sigma_, ratio_;
  std::array<Moments, 3> strain_, strain_ratio_;
};

/// Metrics over all frames of a case: counts are summed; bias, sd and RMSE are the largest of a frame; sigma
/// and scatter are over all points.
Metrics combined(const std::vector<Metrics>& frames);

}  // namespace dic::validation

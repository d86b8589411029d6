#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic {

/// Which peaks of a correlation surface count.
struct PeakOptions {
  int count = 1;     ///< largest number of peaks per pair, >= 1
  int distance = 2;  ///< peaks at most so far (px, in x and y) from a better one do not count; >= 0
  /// Peaks below it (ssd: above it) do not count. None: zncc and ncc demand more than 0.
  std::optional<float> least_score{};
};

/// One of the best peaks of a pair: a shift whose score is the best among its eight neighbours.
struct RankedPeak {
  bool found = false;      ///< false: the pair has fewer peaks
  bool at_border = false;  ///< a neighbour is not defined, so the true peak may lie beyond
  int dx = 0, dy = 0;      ///< whole shift, px
  double x = 0, y = 0;     ///< shift by the quadratic surface through the 3 x 3 scores, px
  float score = 0;         ///< value at the whole shift
  float next_score = 0;    ///< value of the next best peak, also if it is not returned; 0: there is none
  /// Standard deviations of x and y from the residuals of reference and window, if these are white noise, px;
  /// infinite where the scores have no maximum.
  double sigma_x = 0, sigma_y = 0;
};

/// Finds the best peaks of each pair of a correlation, as diffraction patterns, tracked particles and scenes
/// with several targets need them. One call at a time per object.
///
///     dic::PeakFinder finder("cuda");
///     std::vector<dic::RankedPeak> peaks;
///     finder.find(request, {.count = 20, .distance = 8}, peaks);
class PeakFinder {
 public:
  /// device, threads and errors: see Correlator. Peaks are picked on the CPU from surfaces, also a GPU's.
  DIC_API explicit PeakFinder(const std::string& device = "cpu", int threads = 0);
  DIC_API ~PeakFinder();
  DIC_API PeakFinder(PeakFinder&&) noexcept;
  DIC_API PeakFinder& operator=(PeakFinder&&) noexcept;

  /// Finds `options.count` peaks of each pair, pair after pair, best first, those that are missing at the
  /// end. The criterion must not be cross_correlation. Throws as Correlator::surfaces does.
  DIC_API void find(const CorrelateRequest& request, const PeakOptions& options,
                    std::vector<RankedPeak>& out);
  /// Name of the correlation variant of the last call.
  DIC_API const std::string& variant() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic

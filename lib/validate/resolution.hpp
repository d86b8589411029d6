#pragma once

#include <dic/fields.hpp>
#include <dic/synth.hpp>
#include <vector>

namespace dic::validation {

/// Measured share of a displacement of this period.
struct Transfer {
  double period = 0;  ///< px
  double share = 0;   ///< share of the true amplitude; 1 = all
};

/// Resolution of a measurement of star or chirp.
struct Resolution {
  std::vector<Transfer> curve;  ///< periods from long to short
  double spatial = 0;           ///< longest period that loses 10 %, px; infinity: even the longest does
  double noise = 0;             ///< sd of the displacement in a still frame, px
  double product() const { return spatial * noise; }  ///< Product of both, px^2; smaller is better.
};

/// Measured share of the amplitude of a star or chirp, by period: the slope of the measured against the true
/// displacement, over the ok points where the period is within 5 % (chirp: within half a period). Leaves out
/// rows nearer than `margin` px to the first or last row, whose subsets a region of interest cuts.
std::vector<Transfer> transfer_of(const Motion& motion, double amount, const Field& field, int margin = 0);

/// The longest period at which the curve falls below `share`, interpolated. Infinity if it begins below, the
/// shortest period if it stays above.
double period_of_loss(const std::vector<Transfer>& curve, double share = 0.9);

}  // namespace dic::validation

#pragma once

#include <dic/fields.hpp>
#include <dic/synth.hpp>
#include <vector>

namespace dic::validation {

/// How much of a displacement of this period is found.
struct Transfer {
  double period = 0;  ///< px
  double share = 0;   ///< of the true amplitude; 1 = all
};

/// Resolution of a measurement of star or chirp.
struct Resolution {
  std::vector<Transfer> curve;  ///< periods from long to short
  double spatial = 0;           ///< longest period that loses 10 %, px; infinity: even the longest does
  double noise = 0;             ///< sd of the displacement in a still frame, px
  double product() const { return spatial * noise; }  ///< px^2: less is better
};

/// Share of the amplitude that a field of star or chirp has, by period: the slope of the measured against the
/// true displacement, over the ok points where the period is within 5 % (chirp: within half a period). Rows
/// nearer than `margin` px to the first or the last are left out: a region of interest cuts their subsets.
std::vector<Transfer> transfer_of(const Motion& motion, double amount, const Field& field, int margin = 0);

/// The longest period at which the curve falls below `share`, interpolated. Infinity where it begins below,
/// the shortest period where it stays above.
double period_of_loss(const std::vector<Transfer>& curve, double share = 0.9);

}  // namespace dic::validation

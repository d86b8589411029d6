#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/shared/bends.hpp>
#include <vector>

#include "core/parallel.hpp"
#include "stereo/bend_response.hpp"

/// Corrections and derivatives of a match that follow from its neighbours.
namespace dic::stereo {

/// Derivative of the current by the reference image point at every node, [node][4], row by row; the identity
/// where it is not known.
using LocalMaps = std::vector<float>;

struct NeighbourSummary {
  LocalMaps maps;
  std::vector<std::uint8_t> is_known;  ///< value 1 for each node whose derivatives are known
  /// Share of the points of order 1 whose remaining bias exceeds the noise that order 2 would add.
  double bent = 0;
};

/// The windows of nodes through which polynomials give second derivatives, and what they do to the noise of a
/// match: variances of corrected matches and of the difference of both corrections, in units of that of an
/// uncorrected match.
struct BendFilter {
  BendFilter(const MeasuredSubsets& subsets, int step);

  int narrow, wide;  ///< sides of the windows, nodes
  double narrow_variance = 1, wide_variance = 1, difference_variance = 0;
};

NodeGrid node_grid_of(const Grid& grid);

/// The job of subtract_bends() but for its arrays.
BendJob bend_job_of(const Grid& grid, const BendFilter& filter, int order);

/// Subtracts the bias of affine shape functions where the motion bends: perspective bends that of a plane
/// seen by two cameras, and so does a curved surface. The second derivatives come from a quadratic polynomial
/// through the measured neighbours: through wide windows, which add little noise, and through narrow ones as
/// far as these contradict them. What a subset answers to them comes from `responses`. What may remain of the
/// bias counts in sigma, which must not contain it yet. Order 2 has no such bias. The steps are those of
/// <dic/shared/bends.hpp>.
NeighbourSummary subtract_bends(Field& field, const MeasuredSubsets& subsets, const BendFilter& filter,
                                const std::vector<BendResponse>& responses, core::ThreadPool& pool);

}  // namespace dic::stereo

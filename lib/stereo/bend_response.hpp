#pragma once

#include <Eigen/Core>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"

/// How an affine shape function answers to a motion that bends within the subset.
namespace dic::stereo {

/// The displacement at the centre of a subset, (x, y), that a fit of order 1 reports for the second
/// derivatives (u_xx, u_xy, u_yy, v_xx, v_xy, v_yy) of a motion whose displacement there is 0.
using BendResponse = Eigen::Matrix<float, 2, 6>;

/// The responses of the subsets at all nodes of a grid: least-squares fits with the gradients of the
/// reference, mean and gain included, as the refinement makes them. Subsets that the border of the image cuts
/// take their pixels inside. The identity of pixels is enough: a subset of even texture would answer with
/// (S^2 - 1) / 24 to u_xx and u_yy. reference: on the host.
std::vector<BendResponse> bend_responses(ImageView reference, const Grid& grid,
                                         const MeasuredSubsets& subsets, core::ThreadPool& pool);

}  // namespace dic::stereo

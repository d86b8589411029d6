#pragma once

#include <vector>

#include "match/pose_sigmas.hpp"

namespace dic::match {

/// Combines motions so that only the first one turns. See PoseScatter.
void separate_turn(std::vector<PoseScatter::Vector>& loose, pose::Freedom freedom, double rim);

/// A pose after a share of a motion, px at the rim.
pose::Warp moved_along(const pose::Warp& warp, const PoseScatter::Vector& motion, pose::Freedom freedom,
                       double rim, double way);

/// Poses along motions that the pixels of a template do not determine, such as a disc's turn.
///
/// One combination of several motions turns, and the others do not. If a motion turns, the poses are all
/// angles about its pivot, otherwise shifts in its direction by up to half the template. loose: see
/// PoseScatter; rim: of the template, px; step: between poses, px at the rim. The first pose is the given
/// one.
std::vector<pose::Warp> poses_along(const pose::Warp& warp, std::vector<PoseScatter::Vector> loose,
                                    pose::Freedom freedom, double rim, double step);

}  // namespace dic::match

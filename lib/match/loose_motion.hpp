#pragma once

#include <dic/shared/pose.hpp>
#include <vector>

namespace dic::match {

/// Poses along a motion that the pixels of a template do not determine, such as a disc's turn.
///
/// If it turns, the poses are all angles about its pivot, otherwise shifts in its direction by up to half the
/// template. loose: see PoseScatter; rim: of the template, px; step: between poses, px at the rim. The first
/// pose is the given one.
std::vector<pose::Warp> poses_along(const pose::Warp& warp, const std::vector<double>& loose,
                                    pose::Freedom freedom, double rim, double step);

}  // namespace dic::match

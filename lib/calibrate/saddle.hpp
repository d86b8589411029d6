#pragma once

#include <opencv2/core.hpp>
#include <vector>

namespace dic::calibration {

/// Moves corners of squares to the saddle points of the grey around them: a quadratic surface fitted to a
/// disc that moves with its saddle. Around a corner the grey is the same after half a turn, so that the disc
/// comes to rest at the corner, whatever the blur. Corners that do not come to rest near their start stay.
/// free: of the distance between corners, the share around one in which there is nothing else.
void move_to_saddles(const cv::Mat& grey, double free, std::vector<cv::Point2f>& corners);

/// Distance of each place from its nearest neighbour, px.
std::vector<double> nearest_distances(const std::vector<cv::Point2f>& places);

}  // namespace dic::calibration

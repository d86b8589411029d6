#pragma once

#include <opencv2/core.hpp>
#include <optional>
#include <vector>

namespace dic::calibration {

/// The saddle points of the grey near corners of squares: a quadratic surface is fitted to a disc that moves
/// with its saddle. Around a corner the grey is the same after half a turn, so that the disc comes to rest at
/// the corner, whatever the blur. None where it does not, or leaves the image. free: of the distance between
/// corners, the share around one in which there is nothing else.
std::vector<std::optional<cv::Point2f>> saddles_near(const cv::Mat& grey, double free,
                                                     const std::vector<cv::Point2f>& corners);

/// Distance of each place from its nearest neighbour, px.
std::vector<double> nearest_distances(const std::vector<cv::Point2f>& places);

}  // namespace dic::calibration

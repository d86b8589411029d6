#pragma once

#include <opencv2/core.hpp>
#include <optional>
#include <vector>

namespace dic::calibration {

/// Finds the saddle points of the grey levels near corners of squares: a quadratic surface is fitted to a
/// disc that moves to its saddle. The grey levels around a corner are the same after half a turn, so that the
/// disc comes to rest at the corner regardless of blur. The result is empty for a corner whose disc does not
/// come to rest or leaves the image. free: share of the distance between corners within which nothing else is
/// around a corner.
std::vector<std::optional<cv::Point2f>> saddles_near(const cv::Mat& grey, double free,
                                                     const std::vector<cv::Point2f>& corners);

/// The distance of each place from its nearest neighbour, px.
std::vector<double> nearest_distances(const std::vector<cv::Point2f>& places);

}  // namespace dic::calibration

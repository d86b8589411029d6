#pragma once

#include <cstddef>
#include <dic/calibrate.hpp>
#include <dic/image_io.hpp>
#include <opencv2/core.hpp>
#include <optional>
#include <vector>

#include "core/parallel.hpp"

/// Reading of target images, for the calibration of one camera and of two.
namespace dic::calibration {

/// True if a target cannot be told from itself turned by 180 degrees, so that each image may number its
/// points from either end.
bool looks_the_same_turned(const Target& target);

/// Finds the target in image i; `size` receives the size of the image.
CalibrationImage look_at(FrameSource& images, std::int64_t i, const Target& target, Size& size);

/// Finds the target in all images, several at once. Throws UsageError if their sizes differ.
std::vector<CalibrationImage> look_at_all(FrameSource& source, const Target& target, core::ThreadPool& pool,
                                          Size& size);

/// The first usable image before image i in which the target stands as in image i: what repeats tells nothing
/// new, but would count as independent.
std::optional<std::size_t> first_alike(const std::vector<CalibrationImage>& images, std::size_t i);

/// Positions on the target, mm, and in the image, px, as OpenCV takes them.
std::vector<cv::Point3f> on_target(const CalibrationImage& image);
std::vector<cv::Point2f> in_image(const CalibrationImage& image);

double root_mean_square(const std::vector<Camera::Point>& residuals);

/// Share of the image inside the convex hull of the points of all images.
double coverage_of(const std::vector<const CalibrationImage*>& images, Size size);

/// Indices in camera::kLensParameters of the parameters that a model estimates.
std::vector<int> free_parameters(LensModel model);

}  // namespace dic::calibration

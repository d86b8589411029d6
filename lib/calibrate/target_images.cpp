#include "calibrate/target_images.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/opencv.hpp>
#include <opencv2/imgproc.hpp>

namespace dic::calibration {
namespace {

constexpr std::size_t kLeastPoints = 8;  // points that an image needs; those of some targets may be hidden

/// True if x and y of the points on the target turn the other way round in the image.
bool is_left_handed(const std::vector<TargetPoint>& points) {
  TargetPoint mean;
  const auto n = static_cast<double>(points.size());
  for (const TargetPoint& p : points)
    mean = {mean.mm_x + p.mm_x / n, mean.mm_y + p.mm_y / n, mean.x + p.x / n, mean.y + p.y / n};
  double xx = 0, xy = 0, yx = 0, yy = 0;  // sums that tell where the axes of the target point
  for (const TargetPoint& p : points) {
    const double x = p.mm_x - mean.mm_x, y = p.mm_y - mean.mm_y;
    xx += x * (p.x - mean.x), xy += x * (p.y - mean.y), yx += y * (p.x - mean.x), yy += y * (p.y - mean.y);
  }
  return xx * yy - xy * yx < 0;
}

/// True if a target differs from what a mirror shows of it: others are their own mirror image after half a
/// turn. (Rings differ too, but some targets have them in mirrored places.)
bool is_chiral(const Target& target) {
  return target.pattern == TargetPattern::charuco ||
         (target.pattern == TargetPattern::acircles && target.rows % 2 == 0);
}

/// True if the image shows the target as a mirror does.
bool is_mirrored(const Image& image, const Target& target, const std::vector<TargetPoint>& points) {
  if (!is_chiral(target)) return false;
  if (!points.empty()) return is_left_handed(points);
  cv::Mat flipped;
  cv::flip(as_mat(image.view()), flipped, 1);
  return !find_target(as_view(flipped), target).empty();
}

/// The file of an image, or its name if the file holds several.
std::string name_of(const FrameSource& images, std::int64_t i) {
  const bool is_whole_file = images.file(i).filename() == images.name(i);
  return is_whole_file ? images.file(i).string() : images.name(i);
}

}  // namespace

bool looks_the_same_turned(const Target& target) {
  switch (target.pattern) {
    case TargetPattern::checkerboard:
    case TargetPattern::circles:
      return true;
    case TargetPattern::acircles:
      return target.rows % 2 == 0;  // a shifted row lies opposite one that is not
    case TargetPattern::charuco:
    case TargetPattern::rings:
      break;
  }
  return false;
}

CalibrationImage look_at(FrameSource& images, std::int64_t i, const Target& target, Size& size) {
  CalibrationImage found;
  found.file = name_of(images, i);
  Image image;
  try {
    image = images.read(i);
    size = image.size();
    found.points = find_target(image, target);
  } catch (const FileError& error) {
    found.problem = error.what();
    return found;
  }
  if (is_mirrored(image, target, found.points))
    found.problem = "The target is mirrored: was the image flipped, or taken by way of a mirror?";
  else if (found.points.empty())
    found.problem =
        "The target was not found: is all of it in the image, in focus, with the numbers of columns and rows "
        "that were given?";
  else if (found.points.size() < kLeastPoints)
    found.problem = "Only " + std::to_string(found.points.size()) + " corners of the target were found.";
  return found;
}

std::vector<CalibrationImage> look_at_all(FrameSource& source, const Target& target, core::ThreadPool& pool,
                                          Size& size) {
  if (!source.reads_in_parallel())
    throw UsageError("A video is no set of calibration images: extract frames from it.");
  const std::int64_t count = source.count().value_or(0);
  std::vector<CalibrationImage> images(count);
  std::vector<Size> sizes(count);
  pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) images[i] = look_at(source, i, target, sizes[i]);
  });
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (sizes[i] == Size{}) continue;
    if (size == Size{}) size = sizes[i];
    if (sizes[i] != size)
      throw UsageError(
          images[i].file +
          " differs in size from the images before it: calibrate with images of one camera at one "
          "setting.");
  }
  return images;
}

std::optional<std::size_t> first_alike(const std::vector<CalibrationImage>& images, std::size_t i) {
  constexpr double kSame = 0.25;  // px, largest distance of a point from its place in the other image
  const auto same = [](const TargetPoint& p, const TargetPoint& q) {
    return p.mm_x == q.mm_x && p.mm_y == q.mm_y && std::hypot(p.x - q.x, p.y - q.y) < kSame;
  };
  if (!images[i].problem.empty()) return std::nullopt;
  for (std::size_t k = 0; k < i; ++k)
    if (images[k].problem.empty() && std::ranges::equal(images[k].points, images[i].points, same)) return k;
  return std::nullopt;
}

std::vector<cv::Point3f> on_target(const CalibrationImage& image) {
  std::vector<cv::Point3f> points;
  for (const TargetPoint& p : image.points)
    points.emplace_back(static_cast<float>(p.mm_x), static_cast<float>(p.mm_y), 0.0f);
  return points;
}

std::vector<cv::Point2f> in_image(const CalibrationImage& image) {
  std::vector<cv::Point2f> points;
  for (const TargetPoint& p : image.points)
    points.emplace_back(static_cast<float>(p.x), static_cast<float>(p.y));
  return points;
}

double root_mean_square(const std::vector<Camera::Point>& residuals) {
  double sum = 0;
  for (const auto& r : residuals) sum += r.x * r.x + r.y * r.y;
  return std::sqrt(sum / static_cast<double>(residuals.size()));
}

double coverage_of(const std::vector<const CalibrationImage*>& images, Size size) {
  std::vector<cv::Point2f> all, hull;
  for (const CalibrationImage* image : images)
    for (const cv::Point2f& p : in_image(*image)) all.push_back(p);
  cv::convexHull(all, hull);
  return cv::contourArea(hull) / (static_cast<double>(size.width) * size.height);
}

std::vector<int> free_parameters(LensModel model) {
  std::vector<int> free = {0, 1, 2, 3, 4};
  if (model != LensModel::k1) free.push_back(5);
  if (model == LensModel::brown || model == LensModel::rational) free.insert(free.end(), {6, 7, 8});
  if (model == LensModel::rational) free.insert(free.end(), {9, 10, 11});
  return free;
}

}  // namespace dic::calibration

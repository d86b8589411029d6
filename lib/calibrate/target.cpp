#include <algorithm>
#include <array>
#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/opencv.hpp>
#include <numbers>
#include <numeric>
#include <opencv2/calib3d.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>

#include "calibrate/charuco.hpp"
#include "calibrate/rings.hpp"
#include "calibrate/saddle.hpp"

namespace dic {
namespace {

/// Names of the dictionaries in the order of OpenCV's numbers.
constexpr std::array<std::string_view, 21> kDictionaries = {
    "4X4_50",        "4X4_100",        "4X4_250",       "4X4_1000", "5X5_50",         "5X5_100",
    "5X5_250",       "5X5_1000",       "6X6_50",        "6X6_100",  "6X6_250",        "6X6_1000",
    "7X7_50",        "7X7_100",        "7X7_250",       "7X7_1000", "ARUCO_ORIGINAL", "APRILTAG_16h5",
    "APRILTAG_25h9", "APRILTAG_36h10", "APRILTAG_36h11"};

cv::Mat as_grey8(ImageView image) {
  cv::Mat pixels = as_mat(image);
  if (image.type == ScalarType::u8) return pixels;
  cv::Mat grey;
  cv::normalize(pixels, grey, 0, 255, cv::NORM_MINMAX, CV_8U);
  return grey;
}

/// A point of the target. number: counted row by row.
TargetPoint point_of(const Target& target, int number, cv::Point2f place) {
  const int columns = target.pattern == TargetPattern::charuco ? target.columns - 1 : target.columns;
  const int i = number % columns, j = number / columns;
  const int column = target.pattern == TargetPattern::acircles ? 2 * i + j % 2 : i;
  return {column * target.square_mm, j * target.square_mm, place.x, place.y};
}

/// Finds corners to about half a pixel. (findChessboardCorners takes up to 20 s for images without a board.)
std::vector<cv::Point2f> find_corners(const cv::Mat& grey, cv::Size size) {
  std::vector<cv::Point2f> corners;
  // With equalized grey levels the detector misses boards that are blurred, bright, or upside down, and
  // without it others.
  for (const int flags : {int{cv::CALIB_CB_NORMALIZE_IMAGE}, 0})
    if (cv::findChessboardCornersSB(grey, size, corners, flags)) return corners;
  return {};
}

struct Circle {
  cv::Point2f centre;
  double area = 0;  ///< px^2
};

/// The centroid of the darkness around a centre. Darkness counts in proportion between a tenth and nine
/// tenths of the contrast: noise of paper and ink does not count, and pixels at the edge count by their
/// share.
Circle dark_centroid(const cv::Mat& grey, cv::Point2f centre, double radius) {
  const int reach = static_cast<int>(radius) + 1;
  const cv::Point middle(cvRound(centre.x), cvRound(centre.y));
  const cv::Rect box =
      cv::Rect(middle.x - reach, middle.y - reach, 2 * reach + 1, 2 * reach + 1) & cv::Rect({}, grey.size());
  double low = 0, high = 0;
  cv::minMaxLoc(grey(box), &low, &high);
  if (!(high > low)) return {centre};
  double sum = 0, sum_x = 0, sum_y = 0;
  for (int y = box.y; y < box.br().y; ++y)
    for (int x = box.x; x < box.br().x; ++x) {
      if (std::hypot(x - centre.x, y - centre.y) > radius) continue;
      const double dark = (high - grey.at<std::uint8_t>(y, x)) / (high - low);
      const double weight = std::clamp((dark - 0.1) / 0.8, 0.0, 1.0);
      sum += weight, sum_x += weight * x, sum_y += weight * y;
    }
  if (!(sum > 0)) return {centre};
  return {{static_cast<float>(sum_x / sum), static_cast<float>(sum_y / sum)}, sum};
}

/// Finds dark circles on a bright background.
std::vector<Circle> find_dark_circles(const cv::Mat& grey, cv::Size size, int arrangement) {
  cv::SimpleBlobDetector::Params parameters;
  parameters.maxArea = static_cast<float>(grey.total()) / static_cast<float>(size.area());
  std::vector<cv::Point2f> centres;
  if (!cv::findCirclesGrid(grey, size, centres, arrangement, cv::SimpleBlobDetector::create(parameters)))
    return {};
  std::vector<Circle> refined;
  const std::vector<double> distances = calibration::nearest_distances(centres);
  for (std::size_t k = 0; k < centres.size(); ++k) {
    const double radius = distances[k] / 2;
    refined.push_back(dark_centroid(grey, dark_centroid(grey, centres[k], radius).centre, radius));
  }
  return refined;
}

/// The circles of a grid of size.height columns and size.width rows, turned by 90 degrees to one of this
/// size.
std::vector<Circle> turned_circles(const std::vector<Circle>& circles, cv::Size size) {
  std::vector<Circle> out;
  for (int row = 0; row < size.height && !circles.empty(); ++row)
    for (int column = 0; column < size.width; ++column)
      out.push_back(circles[static_cast<std::size_t>(column) * size.height + (size.height - 1 - row)]);
  return out;
}

/// OpenCV may not find a grid that is turned by about 90 degrees, whose columns are rows in the image.
std::vector<Circle> find_circles(const cv::Mat& grey, cv::Size size, int arrangement) {
  for (const cv::Mat& dark : {grey, cv::Mat(255 - grey)}) {
    if (auto found = find_dark_circles(dark, size, arrangement); !found.empty()) return found;
    if (arrangement == cv::CALIB_CB_ASYMMETRIC_GRID || size.width == size.height) continue;
    auto found = turned_circles(find_dark_circles(dark, {size.height, size.width}, arrangement), size);
    if (!found.empty()) return found;
  }
  return {};
}

/// Circles in a regular arrangement, all of which must be visible.
std::vector<TargetPoint> circles_of(const cv::Mat& grey, const Target& target) {
  const bool is_shifted = target.pattern == TargetPattern::acircles;
  const auto found = find_circles(grey, {target.columns, target.rows},
                                  is_shifted ? cv::CALIB_CB_ASYMMETRIC_GRID : cv::CALIB_CB_SYMMETRIC_GRID);
  std::vector<TargetPoint> points;
  for (int k = 0; k < std::ssize(found); ++k) {
    points.push_back(point_of(target, k, found[k].centre));
    points.back().area = found[k].area;
  }
  return points;
}

std::vector<TargetPoint> dots_of_rings(const cv::Mat& grey, const Target& target) {
  std::vector<TargetPoint> points;
  for (const calibration::GridDot& dot : calibration::find_ring_grid(grey))
    points.push_back(
        {dot.column * target.square_mm, dot.row * target.square_mm, dot.centre.x, dot.centre.y, dot.area});
  return points;
}

}  // namespace

calibration::CharucoBoard calibration::board_of(const Target& target) {
  const auto dictionary = std::ranges::find(kDictionaries, target.dictionary) - kDictionaries.begin();
  return {{target.columns, target.rows}, target.square_mm, target.marker_mm, static_cast<int>(dictionary)};
}

std::vector<std::string> Target::validate() const {
  std::vector<std::string> list;
  const bool is_counted = pattern == TargetPattern::rings;  // from the rings
  if (!is_counted && (columns < 3 || rows < 3 || columns > 200 || rows > 200))
    list.push_back(
        "The target needs 3 to 200 columns and rows: count inner corners, circles, or the squares of "
        "charuco.");
  if (!(square_mm > 0) || !std::isfinite(square_mm))
    list.push_back("The distance of the target's squares or circles must be given, in mm.");
  if (pattern == TargetPattern::checkerboard && columns == rows)
    list.push_back(
        "A checkerboard with as many columns as rows looks the same from two sides: use one that differs.");
  if (pattern != TargetPattern::charuco) return list;
  if (!(marker_mm > 0 && marker_mm < square_mm))
    list.push_back("The markers of charuco need a size in mm, below that of the squares.");
  if (std::ranges::find(kDictionaries, dictionary) == kDictionaries.end())
    list.push_back("\"" + dictionary +
                   "\" is no dictionary of markers: 4X4_50, 5X5_100, 6X6_250 and the like.");
  return list;
}

std::vector<TargetPoint> find_target(ImageView image, const Target& target) {
  if (const auto problems = target.validate(); !problems.empty()) throw UsageError(problems.front());
  const cv::Mat grey = as_grey8(image);
  const cv::Size size(target.columns, target.rows);
  if (target.pattern == TargetPattern::rings) return dots_of_rings(grey, target);
  if (target.pattern == TargetPattern::circles || target.pattern == TargetPattern::acircles)
    return circles_of(grey, target);
  calibration::CharucoCorners found;
  if (target.pattern == TargetPattern::checkerboard)
    found.places = find_corners(grey, size);
  else
    found = calibration::find_charuco(grey, calibration::board_of(target));
  if (found.numbers.empty()) {
    found.numbers.resize(found.places.size());
    std::iota(found.numbers.begin(), found.numbers.end(), 0);
  }
  std::vector<std::optional<cv::Point2f>> places(found.places.begin(), found.places.end());
  if (target.pattern == TargetPattern::checkerboard)
    places = calibration::saddles_near(grey, 0.4, found.places);
  if (target.pattern == TargetPattern::charuco)  // a marker's corner lies on the diagonal of its square
    places = calibration::saddles_near(
        grey, std::numbers::sqrt2 * (1 - target.marker_mm / target.square_mm) / 2, found.places);
  std::vector<TargetPoint> points;
  for (std::size_t k = 0; k < places.size(); ++k)
    if (places[k]) points.push_back(point_of(target, found.numbers[k], *places[k]));
  return points;
}

}  // namespace dic

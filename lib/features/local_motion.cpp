#include "features/local_motion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/opencv.hpp>
#include <numbers>
#include <opencv2/features2d.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>

namespace dic::features {
namespace {

constexpr int kLargestSide = 1024;        // largest side of the images in which features are searched, px
constexpr int kLargestFullSide = 640;     // largest side of images that are not reduced, px
constexpr int kReferenceFeatures = 3000;  // number of the strongest features that are used
constexpr int kCurrentFeatures = 12000;
constexpr double kContrast = 0.01;  // contrast of the weakest feature, share of the grey range
constexpr float kDistinct = 0.95f;  // largest distance of the best match over that of the second best
constexpr int kNeighbours = 24;     // number of neighbours whose matches are compared with that of a feature
constexpr int kFewestMatches = 6;   // matches that a motion needs; an affine map fits any three
constexpr int kFits = 4;
constexpr double kCertainty = 0.3;  // error of a map by a feature's scale and orientation, share of distance
constexpr double kPrecision = 1.5;  // error of a position, px of the reduced image
constexpr double kBending = 0.03;   // allowed deviation from an affine motion, share of the distance
constexpr double kThinnest = 0.05;  // least variance of the positions across over that along
constexpr double kLeastArea = 0.1, kLargestArea = 10;  // area in the current image over the reference
constexpr double kBias = 0.25;  // px by which OpenCV's positions are too large, as SIFT doubles the image

using Linear = cv::Matx22d;
using Vector = cv::Vec2d;

/// A feature of the reference and the most similar one of the current image. Positions are in reduced images.
struct Match {
  Vector from, to;
  Linear around;  ///< map of the features' surroundings, by their scales and orientations
};

/// The affine map to = centre_to + linear (from - centre_from).
struct Affine {
  Vector centre_from, centre_to;
  Linear linear;

  Vector operator()(const Vector& from) const { return centre_to + linear * (from - centre_from); }
};

struct Features {
  std::vector<cv::KeyPoint> points;
  cv::Mat descriptors;
};

int reduction_of(const ImageView& image) {
  const int side = std::max(image.width, image.height);
  int reduction = side > kLargestFullSide ? 2 : 1;
  while (side / reduction > kLargestSide) reduction *= 2;
  return reduction;
}

/// The reduced image in 8 bits, over which most of its grey range is stretched.
cv::Mat reduced(const ImageView& image, int reduction) {
  Image values(image.size(), ScalarType::f32);
  cv::Mat all = as_mat(values), out;
  as_mat(image).convertTo(all, CV_32F);
  cv::resize(all, out, {image.width / reduction, image.height / reduction}, 0, 0, cv::INTER_AREA);
  cv::Scalar mean, deviation;
  cv::meanStdDev(out, mean, deviation);
  const double range = 3 * std::max(deviation[0], 1e-6);
  out.convertTo(out, CV_8U, 127.5 / range, 127.5 - 127.5 / range * mean[0]);
  return out;
}

/// The strongest features where `mask` is not zero. SIFT's own limit would also count features elsewhere.
Features features_of(const cv::Mat& image, const cv::Mat& mask, int most) {
  Features out;
  // Descriptors of all features cost less than a second scale space for those of the strongest.
  cv::SIFT::create(0, 3, kContrast)->detectAndCompute(image, mask, out.points, out.descriptors);
  if (std::ssize(out.points) <= most) return out;
  for (std::size_t k = 0; k < out.points.size(); ++k) out.points[k].class_id = static_cast<int>(k);
  cv::KeyPointsFilter::retainBest(out.points, most);
  cv::Mat strongest;
  for (const cv::KeyPoint& point : out.points) strongest.push_back(out.descriptors.row(point.class_id));
  out.descriptors = strongest;
  return out;
}
Features features_of(const cv::Mat& image, int most) {
  Features out;
  cv::SIFT::create(most, 3, kContrast)->detectAndCompute(image, {}, out.points, out.descriptors);
  return out;
}

Vector position(const cv::KeyPoint& feature) { return {feature.pt.x - kBias, feature.pt.y - kBias}; }

/// Matches features. view: the map from the reference to the view of it in which `reference` was found.
std::vector<Match> matches(const Features& reference, const Features& current, const cv::Matx23d& view) {
  std::vector<Match> out;
  if (reference.points.empty() || current.points.size() < 2) return out;
  std::vector<std::vector<cv::DMatch>> best;
  cv::BFMatcher().knnMatch(reference.descriptors, current.descriptors, best, 2);
  const Linear to_view = view.get_minor<2, 2>(0, 0), from_view = to_view.inv();
  const Vector shift{view(0, 2), view(1, 2)};
  for (const auto& two : best) {
    if (two.size() < 2 || two[0].distance > kDistinct * two[1].distance) continue;
    const cv::KeyPoint& from = reference.points[two[0].queryIdx];
    const cv::KeyPoint& to = current.points[two[0].trainIdx];
    const double angle = (to.angle - from.angle) * std::numbers::pi / 180, scale = to.size / from.size;
    const double c = scale * std::cos(angle), s = scale * std::sin(angle);
    out.push_back({from_view * (position(from) - shift), position(to), Linear(c, -s, s, c) * to_view});
  }
  return out;
}

/// Indices of the matches that are nearest to a match in the reference, beginning with itself.
std::vector<int> nearest(const std::vector<Match>& all, const Match& match) {
  std::vector<std::pair<double, int>> order;
  order.reserve(all.size());
  for (int k = 0; k < std::ssize(all); ++k)
    order.emplace_back(cv::norm(all[k].from - match.from, cv::NORM_L2SQR), k);
  const auto end = order.begin() + std::min<std::ptrdiff_t>(kNeighbours + 1, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end());
  std::vector<int> out;
  for (auto at = order.begin(); at != end; ++at) out.push_back(at->second);
  return out;
}

/// Fits an affine map by least squares. Returns false if the positions lie on a line.
bool fit(const std::vector<Match>& all, const std::vector<int>& which, Affine& affine) {
  Vector from, to;
  for (const int k : which) {
    from += all[k].from;
    to += all[k].to;
  }
  const double n = static_cast<double>(which.size());
  from /= n;
  to /= n;
  Linear spread = Linear::zeros(), moved = Linear::zeros();
  for (const int k : which) {
    const Vector a = all[k].from - from, b = all[k].to - to;
    spread += a * a.t();
    moved += b * a.t();
  }
  const double trace = cv::trace(spread), determinant = cv::determinant(spread);
  if (!(determinant > kThinnest * trace * trace)) return false;
  affine = {from, to, moved * spread.inv()};
  return true;
}

/// The matches that the map takes to their target, within `share` of their distance from the centre.
std::vector<int> agreeing(const std::vector<Match>& all, const std::vector<int>& among, const Affine& affine,
                          double share) {
  const double scale = std::sqrt(std::max(1e-6, std::abs(cv::determinant(affine.linear))));
  std::vector<int> out;
  for (const int k : among) {
    const double distance = cv::norm(all[k].from - affine.centre_from);
    const double tolerance = std::max(1.0, scale) * kPrecision + scale * share * distance;
    if (cv::norm(all[k].to - affine(all[k].from)) <= tolerance) out.push_back(k);
  }
  return out;
}

bool plausible(const Linear& linear) {
  const double area = cv::determinant(linear);
  return area >= kLeastArea && area <= kLargestArea;
}

/// Finds an affine map that a match shares with enough of its neighbours; returns false if there is none.
bool find_affine(const std::vector<Match>& all, const Match& match, Affine& affine) {
  const std::vector<int> neighbours = nearest(all, match);
  affine = {match.from, match.to, match.around};
  std::vector<int> agree = agreeing(all, neighbours, affine, kCertainty);
  for (int k = 0; k < kFits; ++k) {
    if (std::ssize(agree) < kFewestMatches || !fit(all, agree, affine) || !plausible(affine.linear))
      return false;
    agree = agreeing(all, neighbours, affine, kBending);
  }
  return std::ssize(agree) >= kFewestMatches && fit(all, agree, affine) &&
         cv::norm(affine(match.from) - match.to) <= 2 * kPrecision;
}

/// The motion of a match in full-size images.
LocalMotion motion_of(const Match& match, const Affine& affine, int reduction) {
  const auto full = [=](double at) { return (at + 0.5) * reduction - 0.5; };
  const Vector to = affine(match.from);
  LocalMotion out{.x = full(match.from[0]), .y = full(match.from[1]), .shape = {}};
  out.shape.u = full(to[0]) - out.x;
  out.shape.v = full(to[1]) - out.y;
  out.shape.ux = affine.linear(0, 0) - 1;
  out.shape.uy = affine.linear(0, 1);
  out.shape.vx = affine.linear(1, 0);
  out.shape.vy = affine.linear(1, 1) - 1;
  return out;
}

/// The map to a view of a whole image that is stretched along `angle`: lengths along it grow by a factor of 2
/// relative to those across. seen: receives the size of the view.
cv::Matx23d view_along(double angle, const cv::Size& size, cv::Size& seen) {
  const double c = std::cos(angle), s = std::sin(angle), along = std::numbers::sqrt2, across = 1 / along;
  const Linear turn(c, s, -s, c), linear = Linear(along, 0, 0, across) * turn;
  double left = 0, top = 0, right = 0, bottom = 0;
  for (const Vector& corner :
       {Vector(size.width, 0), Vector(0, size.height), Vector(size.width, size.height)}) {
    const Vector at = linear * corner;
    left = std::min(left, at[0]);
    right = std::max(right, at[0]);
    top = std::min(top, at[1]);
    bottom = std::max(bottom, at[1]);
  }
  seen = {static_cast<int>(std::ceil(right - left)), static_cast<int>(std::ceil(bottom - top))};
  return {linear(0, 0), linear(0, 1), -left, linear(1, 0), linear(1, 1), -top};
}

}  // namespace

/// Both images, reduced, and the features of the current one.
struct MotionFinder::Images {
  int reduction;
  cv::Mat reference, current;
  std::optional<Features> features;

  Images(ImageView from, ImageView to)
      : reduction(reduction_of(to)), reference(reduced(from, reduction)), current(reduced(to, reduction)) {}

  void find_in_view(const cv::Mat& view, const cv::Mat& mask, const cv::Matx23d& map,
                    std::vector<LocalMotion>& out) {
    const Features seen = features_of(view, mask, kReferenceFeatures);
    if (std::ssize(seen.points) < kFewestMatches) return;  // the features of the current image are dear
    if (!features) features = features_of(current, kCurrentFeatures);
    const std::vector<Match> all = matches(seen, *features, map);
    Affine affine;
    for (const Match& match : all)
      if (find_affine(all, match, affine)) out.push_back(motion_of(match, affine, reduction));
  }
};

MotionFinder::MotionFinder(ImageView reference, ImageView current)
    : images_(std::make_unique<Images>(reference, current)) {}
MotionFinder::~MotionFinder() = default;

std::vector<LocalMotion> MotionFinder::find(ImageView mask, Stretch stretch) {
  const cv::Mat& image = images_->reference;
  cv::Mat reduced_mask;
  cv::resize(as_mat(mask), reduced_mask, image.size(), 0, 0, cv::INTER_NEAREST);
  std::vector<LocalMotion> out;
  if (stretch == Stretch::small) {
    images_->find_in_view(image, reduced_mask, {1, 0, 0, 0, 1, 0}, out);
    return out;
  }
  for (int k = 0; k < 4; ++k) {
    cv::Size size;
    const cv::Matx23d map = view_along(k * std::numbers::pi / 4, image.size(), size);
    cv::Mat view, seen;
    cv::warpAffine(image, view, map, size, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
    cv::warpAffine(reduced_mask, seen, map, size, cv::INTER_NEAREST);
    images_->find_in_view(view, seen, map, out);
  }
  return out;
}

}  // namespace dic::features

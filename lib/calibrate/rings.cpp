#include "calibrate/rings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <queue>
#include <utility>

namespace dic::calibration {
namespace {

struct Blob {
  cv::Point2d centre;
  double area = 0;  ///< px^2
  bool is_ring = false;
  cv::Rect box;
};

/// An outline is a dot if it has the area of the ellipse with its moments.
bool is_ellipse(const std::vector<cv::Point>& outline, double area) {
  constexpr double kAreaError = 0.1, kMostFlat = 0.3;
  constexpr std::size_t kLeastPixels = 12;
  if (outline.size() < kLeastPixels) return false;
  const cv::RotatedRect ellipse = cv::fitEllipse(outline);
  const double a = ellipse.size.width, b = ellipse.size.height;
  // The outline runs through the centres of the outermost pixels, so that half a pixel is missing around it.
  const double expected = CV_PI / 4 * a * b;
  return std::min(a, b) > kMostFlat * std::max(a, b) && std::abs(area - expected) < kAreaError * expected;
}

/// Dark dots. hierarchy: outlines have holes of a ring as their children.
std::vector<Blob> dots_of(const cv::Mat& dark, double least_area) {
  std::vector<std::vector<cv::Point>> outlines;
  std::vector<cv::Vec4i> hierarchy;
  cv::findContours(dark, outlines, hierarchy, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE);
  const cv::Rect inside(2, 2, dark.cols - 4, dark.rows - 4);
  std::vector<Blob> dots;
  for (std::size_t k = 0; k < outlines.size(); ++k) {
    const bool is_hole = hierarchy[k][3] >= 0;
    const double area = cv::contourArea(outlines[k]);
    const cv::Rect box = cv::boundingRect(outlines[k]);
    if (is_hole || area < least_area || (box & inside) != box || !is_ellipse(outlines[k], area)) continue;
    const cv::Moments m = cv::moments(outlines[k]);
    Blob dot{{m.m10 / m.m00, m.m01 / m.m00}, area, false, box};
    double hole = 0;
    for (int child = hierarchy[k][2]; child >= 0; child = hierarchy[child][0])
      hole = std::max(hole, cv::contourArea(outlines[child]));
    dot.is_ring = hole > 0.04 * area;
    dots.push_back(dot);
  }
  return dots;
}

/// The dots whose size is that of most others.
std::vector<Blob> of_one_size(std::vector<Blob> dots) {
  if (dots.empty()) return dots;
  std::vector<double> areas;
  for (const Blob& dot : dots) areas.push_back(dot.area);
  std::ranges::nth_element(areas, areas.begin() + std::ssize(areas) / 2);
  const double middle = areas[areas.size() / 2];
  std::erase_if(dots, [&](const Blob& dot) { return dot.area < 0.3 * middle || dot.area > 3 * middle; });
  return dots;
}

using Node = std::pair<int, int>;  // column, row

/// Numbers dots by their places on a grid, from one dot to its neighbours.
class GridWalk {
 public:
  explicit GridWalk(const std::vector<Blob>& dots) : dots_(dots) {}

  /// The grid that holds the dot `start`: its nodes with the numbers of their dots.
  std::map<Node, int> from(int start) {
    const auto steps = steps_at(start);
    if (!steps) return {};
    nodes_ = {{{0, 0}, start}};
    std::map<int, Node> taken = {{start, {0, 0}}};
    std::queue<Node> open({{0, 0}});
    while (!open.empty()) {
      const Node node = open.front();
      open.pop();
      for (const auto& [dx, dy] : {Node{1, 0}, Node{-1, 0}, Node{0, 1}, Node{0, -1}}) {
        const Node next = {node.first + dx, node.second + dy};
        if (nodes_.contains(next)) continue;
        const cv::Point2d step = step_at(node, dx, dy, *steps);
        const int dot = nearest(dots_[nodes_[node]].centre + step, 0.25 * cv::norm(step));
        if (dot < 0 || taken.contains(dot)) continue;
        nodes_[next] = dot;
        taken[dot] = next;
        open.push(next);
      }
    }
    return nodes_;
  }

 private:
  using Steps = std::array<cv::Point2d, 2>;

  /// The vectors to the two nearest neighbours in different directions.
  std::optional<Steps> steps_at(int start) const {
    std::vector<cv::Point2d> around;
    for (int k = 0; k < std::ssize(dots_); ++k)
      if (k != start) around.push_back(dots_[k].centre - dots_[start].centre);
    std::ranges::sort(around, {}, [](const cv::Point2d& p) { return cv::norm(p); });
    for (std::size_t k = 1; k < std::min<std::size_t>(around.size(), 8); ++k) {
      const double sine = std::abs(around[0].cross(around[k])) / (cv::norm(around[0]) * cv::norm(around[k]));
      if (sine > 0.5) return Steps{around[0], around[k]};
    }
    return std::nullopt;
  }

  /// The step from a node, as from the node behind it, or as from a neighbour.
  cv::Point2d step_at(Node node, int dx, int dy, const Steps& first) const {
    const auto place = [&](int x, int y) -> std::optional<cv::Point2d> {
      const auto found = nodes_.find({x, y});
      if (found == nodes_.end()) return std::nullopt;
      return dots_[found->second].centre;
    };
    const auto [x, y] = node;
    const cv::Point2d here = *place(x, y);
    if (const auto behind = place(x - dx, y - dy)) return here - *behind;
    for (const int side : {-1, 1}) {
      const auto from = place(x + side * dy, y + side * dx),
                 to = place(x + side * dy + dx, y + side * dx + dy);
      if (from && to) return *to - *from;
    }
    return dx != 0 ? first[0] * dx : first[1] * dy;
  }

  int nearest(cv::Point2d place, double most) const {
    int best = -1;
    for (int k = 0; k < std::ssize(dots_); ++k)
      if (const double far = cv::norm(dots_[k].centre - place); far < most) most = far, best = k;
    return best;
  }

  const std::vector<Blob>& dots_;
  std::map<Node, int> nodes_;
};

/// The grid's directions, as nodes of the ring in the corner and the two others.
struct Corner {
  Node corner, x, y;
};

/// The corner among three nodes: it shares its row with one and its column with the other.
std::optional<Corner> corner_of(const std::array<Node, 3>& rings) {
  for (int k = 0; k < 3; ++k) {
    const Node &at = rings[k], &a = rings[(k + 1) % 3], &b = rings[(k + 2) % 3];
    const bool a_in_row = a.second == at.second && b.first == at.first;
    const bool b_in_row = b.second == at.second && a.first == at.first;
    if (!a_in_row && !b_in_row) continue;
    const Node &in_row = a_in_row ? a : b, &in_column = a_in_row ? b : a;
    const bool is_wide = std::abs(in_row.first - at.first) >= std::abs(in_column.second - at.second);
    return is_wide ? Corner{at, in_row, in_column} : Corner{at, in_column, in_row};
  }
  return std::nullopt;
}

/// The centroid and the area of the darkness of a dot. Darkness counts in proportion between a tenth and nine
/// tenths of the contrast; the hole of a ring counts as dark.
void refine(const cv::Mat& grey, Blob& dot) {
  const int margin = std::max(3, std::max(dot.box.width, dot.box.height) / 6);
  const cv::Rect box = cv::Rect(dot.box.x - margin, dot.box.y - margin, dot.box.width + 2 * margin,
                                dot.box.height + 2 * margin) &
                       cv::Rect({}, grey.size());
  std::vector<std::uint8_t> border, middle;
  const double a = dot.box.width / 2.0, b = dot.box.height / 2.0;
  const auto far = [&](int x, int y) { return std::hypot((x - dot.centre.x) / a, (y - dot.centre.y) / b); };
  for (int y = box.y; y < box.br().y; ++y)
    for (int x = box.x; x < box.br().x; ++x) {
      const std::uint8_t value = grey.at<std::uint8_t>(y, x);
      const double at = far(x, y);
      if (at > 1 + 0.6 * margin / a) border.push_back(value);
      if (at > (dot.is_ring ? 0.7 : 0) && at < 0.8) middle.push_back(value);
    }
  if (border.empty() || middle.empty()) return;
  const auto median = [](std::vector<std::uint8_t>& values) {
    std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
    return static_cast<double>(values[values.size() / 2]);
  };
  const double high = median(border), low = median(middle);
  if (!(high > low + 5)) return;
  double sum = 0, sum_x = 0, sum_y = 0;
  for (int y = box.y; y < box.br().y; ++y)
    for (int x = box.x; x < box.br().x; ++x) {
      const double at = far(x, y);
      if (at > 1 + 0.9 * margin / a) continue;
      const double dark = (high - grey.at<std::uint8_t>(y, x)) / (high - low);
      const double weight = at < 0.75 ? 1 : std::clamp((dark - 0.1) / 0.8, 0.0, 1.0);
      sum += weight, sum_x += weight * x, sum_y += weight * y;
    }
  dot.centre = {sum_x / sum, sum_y / sum};
  dot.area = sum;
}

std::vector<GridDot> dark_grid(const cv::Mat& grey, int block) {
  constexpr double kLeastArea = 40, kContrast = 8;
  cv::Mat smooth, dark;
  cv::GaussianBlur(grey, smooth, {}, 1.0);
  cv::adaptiveThreshold(smooth, dark, 255, cv::ADAPTIVE_THRESH_MEAN_C, cv::THRESH_BINARY_INV, block,
                        kContrast);
  std::vector<Blob> dots = of_one_size(dots_of(dark, kLeastArea));
  std::vector<int> rings;
  for (int k = 0; k < std::ssize(dots); ++k)
    if (dots[k].is_ring) rings.push_back(k);
  if (rings.size() < 3) return {};
  const std::map<Node, int> nodes = GridWalk(dots).from(rings[0]);
  std::vector<Node> on_grid;
  for (const auto& [node, dot] : nodes)
    if (dots[dot].is_ring) on_grid.push_back(node);
  if (on_grid.size() != 3) return {};
  const auto corner = corner_of({on_grid[0], on_grid[1], on_grid[2]});
  if (!corner) return {};
  const auto unit = [](Node from, Node to) {
    const auto sign = [](int value) { return (value > 0) - (value < 0); };
    return Node{sign(to.first - from.first), sign(to.second - from.second)};
  };
  const Node x = unit(corner->corner, corner->x), y = unit(corner->corner, corner->y);
  std::vector<GridDot> grid;
  for (const auto& [node, number] : nodes) {
    Blob& dot = dots[number];
    refine(grey, dot);
    const int i = node.first - corner->corner.first, j = node.second - corner->corner.second;
    grid.push_back({i * x.first + j * x.second, i * y.first + j * y.second, dot.centre, dot.area});
  }
  std::ranges::sort(grid, {}, [](const GridDot& dot) { return std::pair(dot.row, dot.column); });
  return grid;
}

}  // namespace

std::vector<GridDot> find_ring_grid(const cv::Mat& grey) {
  const int side = std::min(grey.cols, grey.rows);
  std::vector<GridDot> best;
  for (const bool is_bright : {false, true})
    for (const int parts : {8, 20, 4}) {
      const cv::Mat image = is_bright ? cv::Mat(255 - grey) : grey;
      auto grid = dark_grid(image, std::max(3, side / parts | 1));
      if (grid.size() > best.size()) best = std::move(grid);
      if (best.size() >= 30) return best;
    }
  return best;
}

}  // namespace dic::calibration

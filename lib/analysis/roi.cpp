#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/track.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/mask_box.hpp"

namespace dic {

namespace {

// Coordinates typed as decimals are not exact in binary: a pixel centre this close to the outline is on it.
constexpr double kOnOutline = 1e-9;  // px

/// Largest coordinate: beyond it, differences would lose the pixel, and products would overflow.
constexpr double kFarthest = 1e9;  // px

int first_pixel(double x) { return static_cast<int>(std::ceil(x - kOnOutline)); }
int last_pixel(double x) { return static_cast<int>(std::floor(x + kOnOutline)); }

std::string size_text(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height) + " px";
}

void fill_span(Image& mask, int y, double from, double to) {
  const double width = mask.width();
  const int begin = first_pixel(std::clamp(from, 0.0, width));
  const int end = last_pixel(std::clamp(to, -1.0, width - 1));
  if (begin <= end) std::fill_n(mask.row<std::uint8_t>(y) + begin, end - begin + 1, 255);
}

// Positions where the outline crosses the line y. An edge includes its upper end but not its lower one, so
// that a vertex between two edges counts once.
std::vector<double> crossings(const Roi::Polygon& polygon, int y) {
  std::vector<double> xs;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    auto [a, b] = std::pair(polygon[i], polygon[(i + 1) % polygon.size()]);
    if (a.y > b.y) std::swap(a, b);
    if (a.y <= y && y < b.y) xs.push_back(a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y));
  }
  std::sort(xs.begin(), xs.end());
  return xs;
}

// Fills horizontal edges and lower ends, which the crossings leave out.
void fill_outline(Image& mask, const Roi::Polygon& polygon) {
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    auto [a, b] = std::pair(polygon[i], polygon[(i + 1) % polygon.size()]);
    if (a.y > b.y) std::swap(a, b);
    if (b.y < -kOnOutline || b.y > mask.height() - 1 + kOnOutline) continue;
    const int y = first_pixel(b.y);
    if (y > b.y + kOnOutline) continue;  // no row of pixel centres there
    const double from = std::abs(b.y - a.y) <= kOnOutline ? a.x : b.x;
    fill_span(mask, y, std::min(from, b.x), std::max(from, b.x));
  }
}

void check_polygon(const Roi::Polygon& polygon) {
  if (polygon.size() < 3)
    throw UsageError("A polygon needs at least three corners: give x,y three times or more.");
  for (const Roi::Vertex& vertex : polygon)
    if (!(std::abs(vertex.x) <= kFarthest && std::abs(vertex.y) <= kFarthest))
      throw UsageError("The corners of a polygon must be numbers, at most 1e9 px from the image.");
}

// Marks the pixels whose centre is inside by the even-odd rule, or on the outline.
void fill_polygon(Image& mask, const Roi::Polygon& polygon) {
  check_polygon(polygon);
  const auto [low, high] =
      std::minmax_element(polygon.begin(), polygon.end(), [](auto& a, auto& b) { return a.y < b.y; });
  const double height = mask.height();
  const int y_end = last_pixel(std::clamp(high->y, -1.0, height - 1));
  for (int y = first_pixel(std::clamp(low->y, 0.0, height)); y <= y_end; ++y) {
    const std::vector<double> xs = crossings(polygon, y);
    for (std::size_t i = 0; i + 1 < xs.size(); i += 2) fill_span(mask, y, xs[i], xs[i + 1]);
  }
  fill_outline(mask, polygon);
}

Image filled(const std::vector<Roi::Polygon>& polygons, Size image) {
  Image mask(image, ScalarType::u8);
  for (const Roi::Polygon& polygon : polygons) fill_polygon(mask, polygon);
  return mask;
}

Image filled(const Roi::Rect& rect, Size image) {
  Image mask(image, ScalarType::u8);
  for (int y = rect.y; y < rect.y + rect.height; ++y)
    std::fill_n(mask.row<std::uint8_t>(y) + rect.x, rect.width, 255);
  return mask;
}

// Clears the pixels of `mask` where `keep(x, y)` is false.
template <typename Keep>
void intersect(Image& mask, Keep&& keep) {
  for (int y = 0; y < mask.height(); ++y) {
    std::uint8_t* row = mask.row<std::uint8_t>(y);
    for (int x = 0; x < mask.width(); ++x)
      if (!keep(x, y)) row[x] = 0;
  }
}

void intersect_image(Image& mask, const Image& image) {
  if (image.size() != mask.size())
    throw UsageError("The ROI mask is " + size_text(image.size()) + ", the reference " +
                     size_text(mask.size()) + ": make a mask of the reference's size.");
  visit_scalar(image.type(), [&](auto element) {
    using Element = decltype(element);
    intersect(mask, [&](int x, int y) { return image.row<Element>(y)[x] != 0; });
  });
}

void check_rect(const Roi::Rect& rect, Size image) {
  // Compares differences, because sums of user input could overflow.
  if (rect.width < 1 || rect.height < 1 || rect.x < 0 || rect.y < 0 || rect.width > image.width - rect.x ||
      rect.height > image.height - rect.y)
    throw UsageError("The ROI rectangle " + std::to_string(rect.x) + "," + std::to_string(rect.y) + "," +
                     std::to_string(rect.width) + "," + std::to_string(rect.height) +
                     " does not lie inside the image of " + size_text(image) +
                     ": give x,y,width,height within it.");
}

struct NodeIndex {
  int j = 0, i = 0;  ///< row, column
  auto operator<=>(const NodeIndex&) const = default;
};

std::string position_text(double x, double y) {
  char position[64];
  std::snprintf(position, sizeof position, "%g,%g", x, y);
  return position;
}

[[noreturn]] void refuse_point(const Roi::Vertex& point, const std::string& why) {
  throw UsageError("The position " + position_text(point.x, point.y) + " px cannot be measured: " + why +
                   ".");
}

[[noreturn]] void refuse_beyond(const Grid& grid, const Roi::Vertex& point) {
  refuse_point(point,
               "it lies outside the image or the region of interest, or between their border and the last "
               "point of the grid, one each " +
                   std::to_string(grid.step) + " px; choose it between " + position_text(grid.x0, grid.y0) +
                   " and " + position_text(grid.x(grid.nx - 1), grid.y(grid.ny - 1)) +
                   " px, or a smaller step");
}

[[noreturn]] void refuse_outside(const Grid& grid, const Roi::Vertex& point, int i, int j) {
  refuse_point(point, "it is interpolated between points of the grid, one each " + std::to_string(grid.step) +
                          " px, and the one beside it at " + position_text(grid.x(i), grid.y(j)) +
                          " px lies outside the region of interest; move it further inside, or choose a "
                          "smaller step");
}

/// The nodes between which a position is interpolated.
std::vector<NodeIndex> nodes_around(const Grid& grid, const Roi::Vertex& point) {
  constexpr double kRounding = 1e-9;  // as positions are probed
  const double x = (point.x - grid.x0) / grid.step, y = (point.y - grid.y0) / grid.step;
  if (!(x >= 0 && y >= 0 && x <= grid.nx - 1 && y <= grid.ny - 1)) refuse_beyond(grid, point);
  std::vector<NodeIndex> nodes;
  const auto low = [](double at) { return static_cast<int>(std::floor(at + kRounding)); };
  const auto high = [](double at) { return static_cast<int>(std::ceil(at - kRounding)); };
  for (const int j : std::set{low(y), high(y)})
    for (const int i : std::set{low(x), high(x)}) {
      if (!grid.inside[static_cast<std::size_t>(j) * grid.nx + i]) refuse_outside(grid, point, i, j);
      nodes.push_back({j, i});
    }
  return nodes;
}

bool is_empty(const Image& mask) {
  const std::uint8_t* begin = mask.row<std::uint8_t>(0);
  const std::uint8_t* end = mask.row<std::uint8_t>(mask.height());
  return std::all_of(begin, end, [](std::uint8_t inside) { return inside == 0; });
}

}  // namespace

Image rasterize(const Roi& roi, Size image) {
  if (roi.rect) check_rect(*roi.rect, image);
  Image mask = filled(roi.rect.value_or(Roi::Rect{0, 0, image.width, image.height}), image);
  if (!roi.mask.empty()) intersect_image(mask, roi.mask);
  if (!roi.polygons.empty()) {
    const Image inside = filled(roi.polygons, image);
    intersect(mask, [&](int x, int y) { return inside.row<std::uint8_t>(y)[x] != 0; });
  }
  if (!roi.holes.empty()) {
    const Image hole = filled(roi.holes, image);
    intersect(mask, [&](int x, int y) { return hole.row<std::uint8_t>(y)[x] == 0; });
  }
  if (is_empty(mask))
    throw UsageError("The region of interest is empty: no pixel of the " + size_text(image) +
                     " reference lies inside it.");
  return mask;
}

Grid make_grid(ImageView roi_mask, int step) {
  if (step < 1) throw UsageError("The step between points must be at least 1 px.");
  const Roi::Rect box = analysis::bounding_box(roi_mask);
  Grid grid;
  grid.x0 = box.x;
  grid.y0 = box.y;
  grid.step = step;
  grid.nx = (box.width - 1) / step + 1;
  grid.ny = (box.height - 1) / step + 1;
  grid.inside.resize(grid.nodes());
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      grid.inside[static_cast<std::size_t>(j) * grid.nx + i] =
          roi_mask.row<std::uint8_t>(grid.y(j))[grid.x(i)] != 0;
  return grid;
}

Grid grid_around(const Grid& grid, const std::vector<Roi::Vertex>& points) {
  if (points.empty()) return grid;
  std::set<NodeIndex> needed;
  for (const Roi::Vertex& point : points)
    for (const NodeIndex& node : nodes_around(grid, point)) needed.insert(node);
  const auto [first_row, last_row] = std::pair(needed.begin()->j, needed.rbegin()->j);
  const auto [first, last] = std::ranges::minmax(needed, {}, &NodeIndex::i);
  Grid part;
  part.x0 = grid.x(first.i);
  part.y0 = grid.y(first_row);
  part.step = grid.step;
  part.nx = last.i - first.i + 1;
  part.ny = last_row - first_row + 1;
  part.inside.resize(part.nodes());
  for (const NodeIndex& node : needed)
    part.inside[static_cast<std::size_t>(node.j - first_row) * part.nx + (node.i - first.i)] = 1;
  return part;
}

}  // namespace dic

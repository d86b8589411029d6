#include "draw/cell_raster.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dic::draw {

CellRaster::CellRaster(const MovedGrid& grid, double zoom, cv::Size size)
    : grid_(grid.nx(), grid.ny()), size_(size), places_(static_cast<std::size_t>(size.area())) {
  const auto in_picture = [zoom](cv::Point2d p) {  // pixel centres are integers in image and picture
    return cv::Point2f(static_cast<float>((p.x + 0.5) * zoom - 0.5),
                       static_cast<float>((p.y + 0.5) * zoom - 0.5));
  };
  // Cells share their corners: every corner is made once.
  std::vector<cv::Point2f> upper(grid.nx() + 1), lower(grid.nx() + 1);
  const auto fill = [&](std::vector<cv::Point2f>& corners, int j) {
    for (int i = 0; i <= grid.nx(); ++i)
      if (grid.is_measured(i - 1, j - 1) || grid.is_measured(i, j - 1) || grid.is_measured(i - 1, j) ||
          grid.is_measured(i, j))
        corners[i] = in_picture(grid.corner(i, j));
  };
  fill(upper, 0);
  for (int j = 0; j < grid.ny(); ++j, upper.swap(lower)) {
    fill(lower, j + 1);
    for (int i = 0; i < grid.nx(); ++i)
      if (grid.is_measured(i, j))
        add_cell(bordered_node(i, j), {upper[i], upper[i + 1], lower[i + 1], lower[i]});
  }
}

void CellRaster::add_cell(std::int32_t node, const cv::Point2f (&c)[4]) {
  add_triangle(node, {c[0], c[1], c[2]}, {{0, 0}, {1, 0}, {1, 1}});
  add_triangle(node, {c[0], c[2], c[3]}, {{0, 0}, {1, 1}, {0, 1}});
}

/// Pixels on a side belong to both triangles there, and the later one wins: no gaps.
void CellRaster::add_triangle(std::int32_t node, const cv::Point2f (&c)[3], const cv::Point2f (&places)[3]) {
  const cv::Point2f a = c[1] - c[0], b = c[2] - c[0];
  const float area = a.x * b.y - a.y * b.x;
  if (!(std::abs(area) > 1e-6F)) return;
  const auto [left, right] = std::minmax({c[0].x, c[1].x, c[2].x});
  const auto [top, bottom] = std::minmax({c[0].y, c[1].y, c[2].y});
  const auto limit = [](float value, int end) { return std::clamp(value, -1.0F, static_cast<float>(end)); };
  const int x0 = std::max(0, static_cast<int>(std::ceil(limit(left, size_.width)))),
            x1 = std::min(size_.width - 1, static_cast<int>(std::floor(limit(right, size_.width)))),
            y0 = std::max(0, static_cast<int>(std::ceil(limit(top, size_.height)))),
            y1 = std::min(size_.height - 1, static_cast<int>(std::floor(limit(bottom, size_.height))));
  const cv::Point2f s_and_t = places[0], along_a = (places[1] - places[0]) * 255,
                    along_b = (places[2] - places[0]) * 255;
  for (int y = y0; y <= y1; ++y)
    for (int x = x0; x <= x1; ++x) {
      const cv::Point2f p = cv::Point2f(static_cast<float>(x), static_cast<float>(y)) - c[0];
      const float wa = (p.x * b.y - p.y * b.x) / area, wb = (a.x * p.y - a.y * p.x) / area;
      constexpr float kRounding = 1e-5F;
      if (wa < -kRounding || wb < -kRounding || wa + wb > 1 + kRounding) continue;
      const cv::Point2f place = s_and_t + along_a * wa + along_b * wb;
      places_[static_cast<std::size_t>(y) * size_.width + x] = {
          node, cv::saturate_cast<std::uint8_t>(place.x), cv::saturate_cast<std::uint8_t>(place.y)};
    }
}

namespace {

/// Distance of a place in a cell from its middle, where the node is.
constexpr std::array<float, 256> kFromMiddle = [] {
  std::array<float, 256> distances{};
  for (int place = 0; place < 256; ++place)
    distances[place] = (place < 128 ? 127.5F - place : place - 127.5F) / 255;
  return distances;
}();

/// Bilinear between a node and those that are next to it on the pixel's side. A neighbour without a value is
/// taken to have the node's.
struct Smooth {
  const float* values;    ///< with a border of NaN
  std::ptrdiff_t stride;  ///< of their rows

  float at(std::int32_t node, std::uint8_t s, std::uint8_t t) const {
    const std::ptrdiff_t di = s < 128 ? -1 : 1, dj = t < 128 ? -stride : stride;
    const float own = values[node];
    const auto or_own = [own](float value) { return std::isfinite(value) ? value : own; };
    const float beside = or_own(values[node + di]), below = or_own(values[node + dj]);
    const float across = or_own(values[node + di + dj]);
    const float ws = kFromMiddle[s], wt = kFromMiddle[t];
    return (1 - wt) * ((1 - ws) * own + ws * beside) + wt * ((1 - ws) * below + ws * across);
  }
};

}  // namespace

std::vector<float> CellRaster::with_border(std::span<const float> values) const {
  std::vector<float> bordered(static_cast<std::size_t>(grid_.width + 2) * (grid_.height + 2), NAN);
  for (int j = 0; j < grid_.height; ++j)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(j) * grid_.width, grid_.width,
                bordered.begin() + bordered_node(0, j));
  return bordered;
}

void CellRaster::paint(cv::Mat& picture, std::span<const float> values, const ColourScale& scale, bool smooth,
                       double opacity) const {
  const std::vector<float> bordered = with_border(values);
  const Smooth between{bordered.data(), grid_.width + 2};
  const int weight = static_cast<int>(std::lround(256 * opacity));
  const auto blend = [weight](std::uint8_t under, std::uint8_t over) {
    return static_cast<std::uint8_t>(under + (((over - under) * weight + 128) >> 8));
  };
  for (int y = 0; y < size_.height; ++y) {
    auto* pixel = picture.ptr<cv::Vec3b>(y);
    const Place* place = &places_[static_cast<std::size_t>(y) * size_.width];
    for (int x = 0; x < size_.width; ++x, ++pixel, ++place) {
      const float own = bordered[place->node];
      if (!std::isfinite(own)) continue;
      const Colour colour = scale.colour(smooth ? between.at(place->node, place->s, place->t) : own);
      *pixel = {blend((*pixel)[0], colour.r), blend((*pixel)[1], colour.g), blend((*pixel)[2], colour.b)};
    }
  }
}

}  // namespace dic::draw

#include "draw/cell_raster.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dic::draw {

CellRaster::CellRaster(const MovedGrid& grid, double zoom, cv::Size size)
    : grid_(grid.nx(), grid.ny()), size_(size), pixels_(static_cast<std::size_t>(size.area())) {
  const auto in_picture = [zoom](cv::Point2d p) {  // pixel centres are whole numbers in image and picture
    return cv::Point2f(static_cast<float>((p.x + 0.5) * zoom - 0.5),
                       static_cast<float>((p.y + 0.5) * zoom - 0.5));
  };
  // Cells share their corners, so that each corner is computed only once.
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

/// Pixels on a side belong to both triangles, and the later one wins, so that there are no gaps.
void CellRaster::add_triangle(std::int32_t node, const cv::Point2f (&c)[3], const cv::Point2f (&places)[3]) {
  const cv::Point2f a = c[1] - c[0], b = c[2] - c[0];
  const float area = a.x * b.y - a.y * b.x;
  if (!(std::abs(area) > 1e-6F)) return;
  const auto [left, right] = std::minmax({c[0].x, c[1].x, c[2].x});
  const auto [top, bottom] = std::minmax({c[0].y, c[1].y, c[2].y});
  const auto limit = [](float value, int end) { return std::clamp(value, -1.0F, static_cast<float>(end)); };
  const int x0 = std::max(0, cvCeil(limit(left, size_.width))),
            x1 = std::min(size_.width - 1, cvFloor(limit(right, size_.width))),
            y0 = std::max(0, cvCeil(limit(top, size_.height))),
            y1 = std::min(size_.height - 1, cvFloor(limit(bottom, size_.height)));
  const cv::Point2f along_a = (places[1] - places[0]) * 255, along_b = (places[2] - places[0]) * 255;
  const cv::Point2f per_column(b.y / area, -a.y / area), per_row(-b.x / area, a.x / area);  // weight slopes
  for (int y = y0; y <= y1; ++y) {
    const cv::Point2f in_row = per_row * (static_cast<float>(y) - c[0].y);
    Place* row = &pixels_[static_cast<std::size_t>(y) * size_.width];
    for (int x = x0; x <= x1; ++x) {
      const cv::Point2f w = in_row + per_column * (static_cast<float>(x) - c[0].x);
      constexpr float kRounding = 1e-5F;
      if (std::min(std::min(w.x, w.y), 1 - w.x - w.y) < -kRounding) continue;
      const cv::Point2f place = places[0] + along_a * w.x + along_b * w.y;
      row[x] = {node, cv::saturate_cast<std::uint8_t>(place.x), cv::saturate_cast<std::uint8_t>(place.y)};
    }
  }
}

std::vector<float> CellRaster::with_border(std::span<const float> values) const {
  std::vector<float> bordered(static_cast<std::size_t>(stride()) * (grid_.height + 2), NAN);
  for (int j = 0; j < grid_.height; ++j)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(j) * grid_.width, grid_.width,
                bordered.begin() + bordered_node(0, j));
  return bordered;
}

namespace {

/// Distance of each place in a cell from its middle, where the node is.
constexpr std::array<float, 256> kFromMiddle = [] {
  std::array<float, 256> distances{};
  for (int place = 0; place < 256; ++place)
    distances[place] = (place < 128 ? 127.5F - place : place - 127.5F) / 255;
  return distances;
}();

/// A quarter of a node's cell, between the node and its neighbours on that side. A neighbour without a value
/// takes the value of the node.
class Quarter {
 public:
  /// values: node values with a border of NaN.
  Quarter(const float* values, int stride, bool smooth) : values_(values), stride_(stride), smooth_(smooth) {}

  /// Goes to the quarter of a place; fast for most pixels, which share the quarter of the previous one.
  void move_to(CellRaster::Place place) {
    const int di = place.s < 128 ? -1 : 1, dj = place.t < 128 ? -stride_ : stride_;
    if (place.node == node_ && place.node + di + dj == opposite_) return;
    node_ = place.node, opposite_ = node_ + di + dj;
    own_ = values_[node_];
    if (!has_value()) return;
    const auto or_own = [this](float value) { return smooth_ && std::isfinite(value) ? value : own_; };
    below_ = or_own(values_[node_ + dj]);
    own_to_beside_ = or_own(values_[node_ + di]) - own_;
    below_to_opposite_ = or_own(values_[opposite_]) - below_;
  }
  bool has_value() const { return std::isfinite(own_); }
  /// The bilinear value at a place of this quarter.
  float value(CellRaster::Place place) const {
    const float ws = kFromMiddle[place.s], wt = kFromMiddle[place.t];
    const float here = own_ + ws * own_to_beside_, there = below_ + ws * below_to_opposite_;
    return here + wt * (there - here);
  }

 private:
  const float* values_;
  int stride_;
  bool smooth_;
  std::int32_t node_ = -1, opposite_ = -1;
  float own_ = 0, below_ = 0, own_to_beside_ = 0, below_to_opposite_ = 0;
};

}  // namespace

CellPainter::CellPainter(const CellRaster& raster, std::span<const float> values, const ColourScale& scale,
                         bool smooth, double opacity)
    : raster_(raster), colour_places_(raster.with_border(values)), ends_(scale.ends()), smooth_(smooth) {
  constexpr double kFar = 1e30;  // limit of places, which keeps their differences finite
  for (float& value : colour_places_)
    value = std::isfinite(value) ? static_cast<float>(std::clamp(scale.place(value), -kFar, kFar)) : NAN;
  const auto weight = static_cast<std::uint64_t>(std::clamp(std::lround(256 * opacity), 0L, 256L));
  for (std::size_t k = 0; k < colours_.size(); ++k) {
    const Colour c = scale.colours()[k];
    colours_[k] = kChannels * 128 + weight * (c.r | std::uint64_t{c.g} << 16 | std::uint64_t{c.b} << 32);
  }
  grey_ = (256 - weight) * kChannels;
}

void CellPainter::paint(int y, const std::uint8_t* grey, std::uint8_t* rgb) const {
  Quarter quarter(colour_places_.data(), raster_.stride(), smooth_);
  const auto least = static_cast<float>(ends_.min), most = static_cast<float>(ends_.max);
  for (const CellRaster::Place place : raster_.row(y)) {
    quarter.move_to(place);
    const std::uint64_t under = *grey++;
    std::uint64_t mixed = under * (kChannels << 8);
    if (quarter.has_value()) {
      const float shown = std::clamp(quarter.value(place), least, most);
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): `shown` is at least 0
      mixed = colours_[static_cast<std::uint32_t>(shown + 0.5F)] + under * grey_;
    }
    for (const int bit : {8, 24, 40}) *rgb++ = static_cast<std::uint8_t>(mixed >> bit);
  }
}

}  // namespace dic::draw

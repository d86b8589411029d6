#include "track/anchor.hpp"

#include <algorithm>
#include <cmath>

namespace dic {
namespace {

/// Subset centres; sets dx, dy of the material points. A point that was lost keeps its node's place.
void place(std::vector<int>& x, std::vector<int>& y, std::vector<MaterialPoint>& material, int width,
           int height) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    MaterialPoint& m = material[i];
    if (m.status != Status::ok) continue;
    const double px = x[i] + m.u, py = y[i] + m.v;
    x[i] = static_cast<int>(std::lround(px));
    y[i] = static_cast<int>(std::lround(py));
    m.dx = px - x[i];
    m.dy = py - y[i];
    if (x[i] < 0 || y[i] < 0 || x[i] >= width || y[i] >= height) m.status = Status::out_of_image;
    x[i] = std::clamp(x[i], 0, width - 1);
    y[i] = std::clamp(y[i], 0, height - 1);
  }
}

}  // namespace

Anchor::Anchor(ImageView reference, Image region, const std::vector<int>& node_x,
               const std::vector<int>& node_y, std::vector<MaterialPoint> moved, const RefineOptions& options,
               int threads, const std::string& device)
    : picture(copy_of(reference)),
      roi(std::move(region)),
      material(moved.empty() ? std::vector<MaterialPoint>(node_x.size()) : std::move(moved)),
      x(node_x),
      y(node_y),
      refiner(options, threads, device) {
  place(x, y, material, picture.width(), picture.height());
  const ImageView mask = roi.empty() ? ImageView{} : roi.view();
  refiner.set_reference(picture, x, y, mask);
  search = std::make_unique<IntegerSearch>(picture, x, y, options.subset / 2, mask);
}

const CoarseSearch& Anchor::coarse() {
  if (!coarse_) coarse_.emplace(picture, roi.empty() ? ImageView{} : roi.view());
  return *coarse_;
}

Image moved_roi(const Image& roi, const Grid& grid, const Field& field) {
  Image out(roi.width(), roi.height(), ScalarType::u8);
  if (roi.empty()) return out;
  for (int y = 0; y < roi.height(); ++y)
    for (int x = 0; x < roi.width(); ++x) {
      if (!roi.row<std::uint8_t>(y)[x]) continue;
      const int i = std::clamp((x - grid.x0 + grid.step / 2) / grid.step, 0, grid.nx - 1);
      const int j = std::clamp((y - grid.y0 + grid.step / 2) / grid.step, 0, grid.ny - 1);
      const std::size_t node = static_cast<std::size_t>(j) * grid.nx + i;
      if (!has_values(field.status[node])) continue;
      // Two px each way: stretched cells must not leave gaps.
      const int to_x = static_cast<int>(std::floor(x + field.u[node])),
                to_y = static_cast<int>(std::floor(y + field.v[node]));
      for (int b = std::max(0, to_y); b <= std::min(roi.height() - 1, to_y + 1); ++b)
        for (int a = std::max(0, to_x); a <= std::min(roi.width() - 1, to_x + 1); ++a)
          out.row<std::uint8_t>(b)[a] = 255;
    }
  return out;
}

}  // namespace dic

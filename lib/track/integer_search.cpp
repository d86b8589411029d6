#include "track/integer_search.hpp"

#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <numeric>
#include <optional>

namespace dic {
namespace {

FoundShift found_shift(const Peak& peak, int origin_u, int origin_v) {
  FoundShift out;
  if (!peak.found) return out;
  const auto offset = peak_offset(peak.neighbourhood);
  out.u = origin_u + peak.dx + offset[0];
  out.v = origin_v + peak.dy + offset[1];
  out.score = peak.score;
  out.at_border = peak.at_border;
  return out;
}

}  // namespace

/// Without the outer rows and columns that hold nothing of the ROI: what an edge along the rows or columns
/// cuts needs no mask then.
IntegerSearch::Shape IntegerSearch::shrunk(Shape s, int x, int y, const MaskCounts& roi) {
  const auto empty = [&](int left, int top, int width, int height) {
    return roi.inside(x + left, y + top, width, height) == 0;
  };
  while (empty(s.left, s.top, 1, s.height)) ++s.left, --s.width;
  while (empty(s.left + s.width - 1, s.top, 1, s.height)) --s.width;
  while (empty(s.left, s.top, s.width, 1)) ++s.top, --s.height;
  while (empty(s.left, s.top + s.height - 1, s.width, 1)) --s.height;
  return s;
}

IntegerSearch::IntegerSearch(ImageView reference, std::span<const int> x, std::span<const int> y, int radius,
                             ImageView roi)
    : reference_(reference), roi_(roi) {
  points_.reserve(x.size());
  std::optional<MaskCounts> counts;
  if (!roi.empty()) counts.emplace(roi);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Centre centre{x[i], y[i], 0, 0};
    centre.shape = index_of(shape_of(x[i], y[i], radius, counts ? &*counts : nullptr, centre.coverage));
    points_.push_back(centre);
  }
}

IntegerSearch::Shape IntegerSearch::shape_of(int x, int y, int radius, const MaskCounts* roi,
                                             float& coverage) const {
  const int left = std::max(-radius, -x), right = std::min(radius, reference_.width - 1 - x);
  const int top = std::max(-radius, -y), bottom = std::min(radius, reference_.height - 1 - y);
  Shape shape{left, top, right - left + 1, bottom - top + 1, false};
  std::int64_t inside = shape.area();
  if (roi) {
    inside = roi->inside(x + left, y + top, shape.width, shape.height);
    if (inside > 0 && inside < shape.area()) shape = shrunk(shape, x, y, *roi);
    shape.masked = inside < shape.area();
  }
  coverage = static_cast<float>(inside) / static_cast<float>((2 * radius + 1) * (2 * radius + 1));
  return shape;
}

int IntegerSearch::index_of(const Shape& shape) {
  const auto known = std::find(shapes_.begin(), shapes_.end(), shape);
  if (known != shapes_.end()) return static_cast<int>(known - shapes_.begin());
  shapes_.push_back(shape);
  return static_cast<int>(shapes_.size()) - 1;
}

double IntegerSearch::coverage(std::int64_t point) const { return points_[point].coverage; }

MatrixPosition IntegerSearch::reference_position(std::int64_t point) const {
  const Centre& p = points_[point];
  return {0, p.x + shapes_[p.shape].left, p.y + shapes_[p.shape].top};
}

CorrelateRequest IntegerSearch::request(const Shape& shape, std::span<const MatrixPosition> positions,
                                        std::span<const ImageView> current) const {
  CorrelateRequest out;
  out.measure = Measure::zncc;
  out.reference = {std::span(&reference_, 1), positions, shape.height, shape.width};
  out.search.pictures = current;
  if (shape.masked) out.reference_mask = std::span(&roi_, 1);
  return out;
}

std::vector<FoundShift> IntegerSearch::around(Correlator& correlator, ImageView current,
                                              std::span<const std::int64_t> which,
                                              std::span<const Prediction> predictions, int range) const {
  std::vector<FoundShift> out(which.size());
  std::vector<std::size_t> order(which.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return points_[which[a]].shape < points_[which[b]].shape; });
  std::vector<MatrixPosition> references, windows;
  std::vector<Peak> peaks;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const int shape_index = points_[which[order[begin]]].shape;
    const Shape& shape = shapes_[shape_index];
    references.clear();
    windows.clear();
    for (end = begin; end < order.size() && points_[which[order[end]]].shape == shape_index; ++end) {
      const MatrixPosition at = reference_position(which[order[end]]);
      const Prediction& p = predictions[order[end]];
      references.push_back(at);
      windows.push_back({0, at.x + p.u - range, at.y + p.v - range});
    }
    CorrelateRequest job = request(shape, references, std::span(&current, 1));
    job.form = Form::one_to_one;
    job.search.positions = windows;
    job.search.width = shape.width + 2 * range;
    job.search.height = shape.height + 2 * range;
    job.shifts = {0, 2 * range, 0, 2 * range};
    correlator.peaks(job, peaks);
    for (std::size_t k = begin; k < end; ++k) {
      const Prediction& p = predictions[order[k]];
      out[order[k]] = found_shift(peaks[k - begin], p.u - range, p.v - range);
    }
  }
  return out;
}

std::vector<FoundShift> IntegerSearch::everywhere(Correlator& correlator, ImageView current) const {
  std::vector<FoundShift> out(points_.size());
  const MatrixPosition whole{};
  std::vector<Peak> peaks;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const Shape& shape = shapes_[s];
    std::vector<std::int64_t> members;
    std::vector<MatrixPosition> references;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (points_[i].shape == static_cast<int>(s)) {
        members.push_back(static_cast<std::int64_t>(i));
        references.push_back(reference_position(members.back()));
      }
    CorrelateRequest job = request(shape, references, std::span(&current, 1));
    job.form = Form::n_to_m;
    job.search.positions = std::span(&whole, 1);
    job.search.width = current.width;
    job.search.height = current.height;
    job.shifts = Shifts::valid(shape.height, shape.width, current.height, current.width);
    if (job.shifts.count() == 0) continue;
    correlator.peaks(job, peaks);
    for (std::size_t k = 0; k < members.size(); ++k)
      out[members[k]] = found_shift(peaks[k], -references[k].x, -references[k].y);
  }
  return out;
}

}  // namespace dic

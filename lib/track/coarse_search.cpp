#include "track/coarse_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "track/integer_search.hpp"

namespace dic {
namespace {

constexpr int kRadius = 10;        // of a subset in reduced pictures, px
constexpr int kSpacing = 12;       // of lattice nodes, px
constexpr int kMaxTopNodes = 100;  // of them where each searches a whole picture
constexpr int kSmallestSide = 96;  // of the most reduced picture, px
constexpr int kSmallestRoi = 40;   // of the ROI's box in the most reduced picture, px
constexpr int kFinerRange = 3;     // px that a finer level may correct in one step
constexpr int kFinerSteps = 3;
constexpr float kRecognized = 0.4f;          // zncc of a subset that was found
constexpr double kConfident = 0.5;           // share of nodes that makes a level trustworthy
constexpr double kMinCoverage = 0.25;        // of a subset by ROI and picture
constexpr int kMinTopNodes = 16;             // fewer do not tell a field
constexpr std::int64_t kTopWork = 50 << 20;  // nodes times px of the pictures that they search

/// The picture as 8 bit, its range stretched to 0..255.
Image stretched(ImageView picture) {
  Image out(picture.width, picture.height, ScalarType::u8);
  visit_scalar(picture.type, [&](auto element) {
    using T = decltype(element);
    double low = picture.row<T>(0)[0], high = low;
    for (int y = 0; y < picture.height; ++y) {
      const auto [a, b] = std::minmax_element(picture.row<T>(y), picture.row<T>(y) + picture.width);
      low = std::min(low, static_cast<double>(*a));
      high = std::max(high, static_cast<double>(*b));
    }
    const float scale = high > low ? static_cast<float>(255 / (high - low)) : 0.0f;
    for (int y = 0; y < picture.height; ++y)
      std::transform(
          picture.row<T>(y), picture.row<T>(y) + picture.width, out.row<std::uint8_t>(y), [&](T value) {
            return static_cast<std::uint8_t>((static_cast<float>(value) - static_cast<float>(low)) * scale +
                                             0.5f);
          });
  });
  return out;
}

/// Half the size: means of 2x2 px; an odd last row or column is dropped.
Image halved(const Image& in) {
  Image out(in.width() / 2, in.height() / 2, ScalarType::u8);
  for (int y = 0; y < out.height(); ++y) {
    const std::uint8_t *a = in.row<std::uint8_t>(2 * y), *b = in.row<std::uint8_t>(2 * y + 1);
    std::uint8_t* to = out.row<std::uint8_t>(y);
    for (int x = 0; x < out.width(); ++x)
      to[x] = static_cast<std::uint8_t>((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1] + 2) / 4);
  }
  return out;
}

/// 0 or 255.
Image binary(ImageView mask) {
  Image out(mask.width, mask.height, ScalarType::u8);
  for (int y = 0; y < mask.height; ++y)
    std::transform(mask.row<std::uint8_t>(y), mask.row<std::uint8_t>(y) + mask.width,
                   out.row<std::uint8_t>(y),
                   [](std::uint8_t value) { return static_cast<std::uint8_t>(value ? 255 : 0); });
  return out;
}

std::vector<Image> pyramid(Image full_size, int levels) {
  std::vector<Image> out;
  out.push_back(std::move(full_size));
  for (int level = 1; level < levels; ++level) out.push_back(halved(out.back()));
  return out;
}

/// How many nodes may search the whole picture.
int top_nodes(const Image& picture) {
  const std::int64_t area = static_cast<std::int64_t>(picture.width()) * picture.height();
  return static_cast<int>(std::min<std::int64_t>(kMaxTopNodes, kTopWork / area));
}

struct Box {
  int x0 = 0, y0 = 0, width = 0, height = 0;
};

Box bounding_box(const Image& mask) {
  int left = mask.width(), right = -1, top = mask.height(), bottom = -1;
  for (int y = 0; y < mask.height(); ++y)
    for (int x = 0; x < mask.width(); ++x)
      if (mask.row<std::uint8_t>(y)[x]) {
        left = std::min(left, x);
        right = std::max(right, x);
        top = std::min(top, y);
        bottom = y;
      }
  return {left, top, std::max(0, right - left + 1), std::max(0, bottom - top + 1)};
}

/// Lattice over a box: at most `max_nodes` nodes, at least one.
CoarseField make_lattice(const Box& box, int level, int max_nodes) {
  CoarseField field;
  field.reduction = 1 << level;
  const double area = static_cast<double>(box.width) * box.height;
  const int by_count = static_cast<int>(std::ceil(std::sqrt(area / max_nodes)));
  const int by_size = std::clamp(std::min(box.width, box.height) / 4, 3, kSpacing);
  field.spacing = std::max(by_count, by_size);
  field.nx = std::max(1, (box.width - 1) / field.spacing + 1);
  field.ny = std::max(1, (box.height - 1) / field.spacing + 1);
  // Centred in the box: border subsets are cut, and cut subsets are weaker.
  field.x0 = box.x0 + (box.width - 1 - (field.nx - 1) * field.spacing) / 2;
  field.y0 = box.y0 + (box.height - 1 - (field.ny - 1) * field.spacing) / 2;
  field.u.assign(static_cast<std::size_t>(field.nx) * field.ny, 0);
  field.v = field.u;
  return field;
}

struct Nodes {
  std::vector<int> x, y;
};

Nodes nodes_of(const CoarseField& field) {
  Nodes nodes;
  for (int j = 0; j < field.ny; ++j)
    for (int i = 0; i < field.nx; ++i) {
      nodes.x.push_back(field.x0 + i * field.spacing);
      nodes.y.push_back(field.y0 + j * field.spacing);
    }
  return nodes;
}

float median(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls visit(index) for the up to 8 neighbours of node (i, j).
template <typename Visit>
void visit_neighbours(const CoarseField& f, int i, int j, const Visit& visit) {
  for (int b = std::max(0, j - 1); b <= std::min(f.ny - 1, j + 1); ++b)
    for (int a = std::max(0, i - 1); a <= std::min(f.nx - 1, i + 1); ++a)
      if (a != i || b != j) visit(b * f.nx + a);
}

/// Nodes that agree with the median of their recognized neighbours; strain of up to a third is agreement.
std::vector<bool> consistent(const CoarseField& f, const std::vector<bool>& recognized) {
  const float tolerance = 1.5f + 0.35f * static_cast<float>(f.spacing);
  std::vector<bool> keep(recognized.size(), false);
  std::vector<float> us, vs;
  for (int j = 0; j < f.ny; ++j)
    for (int i = 0; i < f.nx; ++i) {
      const int k = j * f.nx + i;
      if (!recognized[k]) continue;
      us.clear();
      vs.clear();
      visit_neighbours(f, i, j, [&](int n) {
        if (!recognized[n]) return;
        us.push_back(f.u[n]);
        vs.push_back(f.v[n]);
      });
      keep[k] =
          us.empty() ? f.nx * f.ny == 1 : std::hypot(f.u[k] - median(us), f.v[k] - median(vs)) <= tolerance;
    }
  return keep;
}

/// Fills the nodes that are not known from the means of their known neighbours, ring by ring.
void fill(CoarseField& f, std::vector<bool> known) {
  while (std::find(known.begin(), known.end(), false) != known.end() &&
         std::find(known.begin(), known.end(), true) != known.end()) {
    std::vector<bool> next = known;
    for (int j = 0; j < f.ny; ++j)
      for (int i = 0; i < f.nx; ++i) {
        const int k = j * f.nx + i;
        if (known[k]) continue;
        float u = 0, v = 0;
        int count = 0;
        visit_neighbours(f, i, j, [&](int n) {
          if (!known[n]) return;
          u += f.u[n];
          v += f.v[n];
          ++count;
        });
        if (count == 0) continue;
        f.u[k] = u / static_cast<float>(count);
        f.v[k] = v / static_cast<float>(count);
        next[k] = true;
      }
    known = std::move(next);
  }
}

/// Takes over what was found, judges it and fills the rest. `usable`: nodes that were searched at all.
void finish(CoarseField& f, const std::vector<FoundShift>& found, const std::vector<bool>& usable) {
  std::vector<bool> recognized(found.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    recognized[k] = usable[k] && found[k].score >= kRecognized;
    if (!recognized[k]) continue;
    f.u[k] = static_cast<float>(found[k].u);
    f.v[k] = static_cast<float>(found[k].v);
  }
  const std::vector<bool> keep = consistent(f, recognized);
  const auto kept = std::count(keep.begin(), keep.end(), true);
  const auto searched = std::count(usable.begin(), usable.end(), true);
  f.confidence = searched ? static_cast<double>(kept) / static_cast<double>(searched) : 0;
  fill(f, keep);
}

std::vector<bool> usable_nodes(const IntegerSearch& search, std::size_t count) {
  std::vector<bool> usable(count);
  for (std::size_t k = 0; k < count; ++k)
    usable[k] = search.coverage(static_cast<std::int64_t>(k)) >= kMinCoverage;
  return usable;
}

}  // namespace

CoarseShift CoarseField::at(double x, double y) const {
  CoarseShift out;
  if (!valid()) return out;
  // A reduced px covers `reduction` px of the full picture; its centre is theirs.
  const double centre = 0.5 * (reduction - 1);
  const auto locate = [&](double position, int origin, int n, int& index, double& t) {
    const double node = std::clamp(((position - centre) / reduction - origin) / spacing, 0.0, n - 1.0);
    index = std::min(static_cast<int>(node), std::max(0, n - 2));
    t = node - index;
  };
  int i = 0, j = 0;
  double s = 0, t = 0;
  locate(x, x0, nx, i, s);
  locate(y, y0, ny, j, t);
  const int i1 = std::min(i + 1, nx - 1), j1 = std::min(j + 1, ny - 1);
  const double pitch = static_cast<double>(spacing) * reduction;
  const auto sample = [&](const std::vector<float>& f, double& value, double& dx, double& dy) {
    const double a = f[j * nx + i], b = f[j * nx + i1], c = f[j1 * nx + i], d = f[j1 * nx + i1];
    value = reduction * ((1 - t) * ((1 - s) * a + s * b) + t * ((1 - s) * c + s * d));
    dx = reduction * ((1 - t) * (b - a) + t * (d - c)) / pitch;
    dy = reduction * ((1 - s) * (c - a) + s * (d - b)) / pitch;
  };
  sample(u, out.u, out.ux, out.uy);
  sample(v, out.v, out.vx, out.vy);
  return out;
}

CoarseSearch::CoarseSearch(ImageView reference, ImageView roi) {
  Box box{0, 0, reference.width, reference.height};
  if (!roi.empty()) {
    roi_.push_back(binary(roi));
    box = bounding_box(roi_[0]);
  }
  int levels = 1;
  while (std::min(reference.width, reference.height) >> levels >= kSmallestSide &&
         std::min(box.width, box.height) >> levels >= kSmallestRoi)
    ++levels;
  reference_ = pyramid(stretched(reference), levels);
  if (!roi.empty()) roi_ = pyramid(std::move(roi_[0]), levels);
}

CoarseField CoarseSearch::search_top(Correlator& correlator, const Image& current, int level) const {
  const Image& reference = reference_[level];
  const ImageView roi = roi_.empty() ? ImageView{} : roi_[level].view();
  const Box box = roi_.empty() ? Box{0, 0, reference.width(), reference.height()} : bounding_box(roi_[level]);
  CoarseField field = make_lattice(box, level, top_nodes(current));
  const Nodes nodes = nodes_of(field);
  const IntegerSearch search(reference, nodes.x, nodes.y, kRadius, roi);
  finish(field, search.everywhere(correlator, current), usable_nodes(search, nodes.x.size()));
  return field;
}

CoarseField CoarseSearch::search_finer(Correlator& correlator, const Image& current, int level,
                                       const CoarseField& coarser) const {
  const Image& reference = reference_[level];
  const ImageView roi = roi_.empty() ? ImageView{} : roi_[level].view();
  const Box box = roi_.empty() ? Box{0, 0, reference.width(), reference.height()} : bounding_box(roi_[level]);
  CoarseField field = make_lattice(box, level, 1 << 30);
  const Nodes nodes = nodes_of(field);
  const IntegerSearch search(reference, nodes.x, nodes.y, kRadius, roi);
  std::vector<std::int64_t> which(nodes.x.size());
  std::iota(which.begin(), which.end(), std::int64_t{0});
  std::vector<Prediction> predictions;
  const double centre = 0.5 * (field.reduction - 1);
  for (std::size_t k = 0; k < which.size(); ++k) {
    const CoarseShift s =
        coarser.at(nodes.x[k] * field.reduction + centre, nodes.y[k] * field.reduction + centre);
    predictions.push_back({static_cast<int>(std::lround(s.u / field.reduction)),
                           static_cast<int>(std::lround(s.v / field.reduction))});
    field.u[k] = static_cast<float>(s.u / field.reduction);
    field.v[k] = static_cast<float>(s.v / field.reduction);
  }
  std::vector<FoundShift> found(which.size());
  for (int step = 0; step < kFinerSteps && !which.empty(); ++step) {
    const auto results = search.around(correlator, current, which, predictions, kFinerRange);
    std::vector<std::int64_t> again;
    std::vector<Prediction> moved;
    for (std::size_t k = 0; k < which.size(); ++k) {
      found[which[k]] = results[k];
      if (!results[k].at_border) continue;
      again.push_back(which[k]);
      moved.push_back(
          {static_cast<int>(std::lround(results[k].u)), static_cast<int>(std::lround(results[k].v))});
    }
    which = std::move(again);
    predictions = std::move(moved);
  }
  finish(field, found, usable_nodes(search, nodes.x.size()));
  return field;
}

CoarseField CoarseSearch::run(Correlator& correlator, ImageView current) const {
  const std::vector<Image> pictures = pyramid(stretched(current), static_cast<int>(reference_.size()));
  int level = static_cast<int>(pictures.size()) - 1;
  CoarseField field = search_top(correlator, pictures[level], level);
  // A pattern may have lost its contrast at this reduction: try larger pictures while they can be searched
  // whole.
  for (int finer = level - 1; field.confidence < kConfident && finer >= 0; --finer) {
    if (top_nodes(pictures[finer]) < kMinTopNodes) break;
    CoarseField candidate = search_top(correlator, pictures[finer], finer);
    if (candidate.confidence <= field.confidence) continue;
    field = std::move(candidate);
    level = finer;
  }
  // Level 0 is left to the points' own search.
  while (field.valid() && --level >= 1) {
    CoarseField finer = search_finer(correlator, pictures[level], level, field);
    if (!finer.valid()) break;
    field = std::move(finer);
  }
  return field;
}

}  // namespace dic

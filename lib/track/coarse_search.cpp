#include "track/coarse_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "analysis/image_pyramid.hpp"
#include "analysis/mask_box.hpp"

namespace dic::track {
namespace {

constexpr int kRadius = 10;        // radius of a subset in reduced images, px
constexpr int kSpacing = 12;       // distance between lattice nodes, px
constexpr int kMaxTopNodes = 100;  // number of lattice nodes if each searches a whole image
constexpr int kSmallestSide = 96;  // smallest side of the most reduced image, px
constexpr int kSmallestRoi = 40;   // smallest side of the ROI's box in the most reduced image, px
constexpr int kFinerRange = 3;     // px that a finer level may correct in one step
constexpr int kFinerSteps = 3;
constexpr float kRecognized = 0.4f;    // smallest zncc of a subset that counts as found
constexpr double kConfident = 0.5;     // share of nodes that makes a level trustworthy
constexpr double kMinCoverage = 0.25;  // smallest share of a subset inside ROI and image
constexpr double kLikely = 0.25;       // share of nodes found near possible places that makes these right
constexpr int kBesidePlaces = 16;      // distance from possible places, px of the full image,
constexpr int kLeastBeside = 4;        // and the least one, px of the reduced image
constexpr int kMinTopNodes = 16;       // fewer nodes are not enough for a field
constexpr std::int64_t kTopWork = 50 << 20;  // most nodes times px of the images that they search

/// The mask as an image of 0 and 255.
Image binary(ImageView mask) {
  Image out(mask.size(), ScalarType::u8);
  for (int y = 0; y < mask.height; ++y)
    std::transform(mask.row<std::uint8_t>(y), mask.row<std::uint8_t>(y) + mask.width,
                   out.row<std::uint8_t>(y),
                   [](std::uint8_t value) { return static_cast<std::uint8_t>(value ? 255 : 0); });
  return out;
}

/// A field of zeros on a lattice over a box, with 1 to `most_nodes` nodes.
CoarseField field_over(const Roi::Rect& box, int level, int most_nodes) {
  CoarseField field;
  field.reduction = 1 << level;
  const double area = static_cast<double>(box.width) * box.height;
  const int by_count = static_cast<int>(std::ceil(std::sqrt(area / most_nodes)));
  const int by_size = std::clamp(std::min(box.width, box.height) / 4, 3, kSpacing);
  field.spacing = std::max(by_count, by_size);
  field.nx = std::max(1, (box.width - 1) / field.spacing + 1);
  field.ny = std::max(1, (box.height - 1) / field.spacing + 1);
  // The lattice is centred in the box, because subsets at the border are clipped and have less texture.
  field.x0 = box.x + (box.width - 1 - (field.nx - 1) * field.spacing) / 2;
  field.y0 = box.y + (box.height - 1 - (field.ny - 1) * field.spacing) / 2;
  field.u.assign(static_cast<std::size_t>(field.nx) * field.ny, 0);
  field.v = field.u;
  return field;
}

/// The lattice with its searched nodes. roi: empty if the box is the whole ROI.
CoarseLattice lattice_of(CoarseField field, int level, int width, int height, const Roi::Rect& box,
                         ImageView roi, core::ThreadPool& pool) {
  std::vector<int> x, y;
  for (int j = 0; j < field.ny; ++j)
    for (int i = 0; i < field.nx; ++i) {
      x.push_back(field.x0 + i * field.spacing);
      y.push_back(field.y0 + j * field.spacing);
    }
  SubsetShapes shapes =
      roi.empty() ? SubsetShapes(box, x, y, kRadius) : SubsetShapes(width, height, x, y, kRadius, roi, pool);
  std::vector<std::int64_t> searched;
  for (std::int64_t k = 0; k < shapes.size(); ++k)
    if (shapes.coverage(k) >= kMinCoverage) searched.push_back(k);
  return {level, std::move(field), std::move(x), std::move(y), std::move(shapes), std::move(searched)};
}

float median(std::span<float> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
/// True if the value is within this distance of most of the others. It is then as close to their median,
/// without sorting.
bool is_near_most(float value, std::span<const float> others, float distance) {
  const auto near = std::count_if(others.begin(), others.end(),
                                  [=](float other) { return std::abs(other - value) <= distance; });
  return 2 * near > std::ssize(others);
}

/// Calls visit(index) for the up to 8 neighbours of node (i, j).
template <typename Visit>
void visit_neighbours(const CoarseField& f, int i, int j, const Visit& visit) {
  for (int b = std::max(0, j - 1); b <= std::min(f.ny - 1, j + 1); ++b)
    for (int a = std::max(0, i - 1); a <= std::min(f.nx - 1, i + 1); ++a)
      if (a != i || b != j) visit(b * f.nx + a);
}

/// True if the displacement (u, v) agrees with the median of others. Strain of up to a third counts as
/// agreement.
bool agrees(float u, float v, std::span<float> us, std::span<float> vs, int spacing) {
  const float tolerance = 1.5f + 0.35f * static_cast<float>(spacing), each = 0.7f * tolerance;
  if (is_near_most(u, us, each) && is_near_most(v, vs, each)) return true;
  return std::hypot(u - median(us), v - median(vs)) <= tolerance;
}

/// True for nodes that agree with their recognized neighbours.
std::vector<bool> consistent(const CoarseField& f, const std::vector<bool>& recognized) {
  std::vector<bool> keep(recognized.size(), false);
  std::array<float, 8> us, vs;
  for (int j = 0; j < f.ny; ++j)
    for (int i = 0; i < f.nx; ++i) {
      const int k = j * f.nx + i;
      if (!recognized[k]) continue;
      std::size_t count = 0;
      visit_neighbours(f, i, j, [&](int n) {
        if (!recognized[n]) return;
        us[count] = f.u[n];
        vs[count++] = f.v[n];
      });
      keep[k] = count == 0 ? f.nx * f.ny == 1
                           : agrees(f.u[k], f.v[k], {us.data(), count}, {vs.data(), count}, f.spacing);
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

/// Completes the field from what was found at the nodes lattice.searched: removes wrong nodes and fills gaps.
void finish(CoarseField& f, const CoarseLattice& lattice, const std::vector<FoundShift>& found) {
  std::vector<bool> recognized(f.u.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].score < kRecognized) continue;
    const std::int64_t k = lattice.searched[i];
    recognized[k] = true;
    f.u[k] = static_cast<float>(found[i].u);
    f.v[k] = static_cast<float>(found[i].v);
  }
  const std::vector<bool> keep = consistent(f, recognized);
  const auto kept = std::count(keep.begin(), keep.end(), true);
  f.confidence = found.empty() ? 0 : static_cast<double>(kept) / static_cast<double>(found.size());
  fill(f, keep);
}

}  // namespace

CoarseShift CoarseField::at(double x, double y) const {
  return valid() ? sample(*this, u.data(), v.data(), x, y) : CoarseShift{};
}

CoarseSearch::CoarseSearch(int width, int height, ImageView roi, core::ThreadPool& pool)
    : pool_(pool),
      width_(width),
      height_(height),
      box_(roi.empty() ? Roi::Rect{0, 0, width, height} : analysis::bounding_box(roi)) {
  while (std::min(width, height) >> levels_ >= kSmallestSide &&
         std::min(box_.width, box_.height) >> levels_ >= kSmallestRoi)
    ++levels_;
  // Masks of whole images take longer than the search.
  if (!roi.empty() && !analysis::fills(roi, box_)) roi_ = analysis::pyramid(binary(roi), levels_, pool);
  whole_.resize(levels_);
  finer_.resize(levels_);
}

/// Number of nodes that may search the whole level.
int CoarseSearch::most_top_nodes(int level) const {
  const std::int64_t area = static_cast<std::int64_t>(width_ >> level) * (height_ >> level);
  return static_cast<int>(std::min<std::int64_t>(kMaxTopNodes, kTopWork / area));
}
bool CoarseSearch::may_search_whole(int level) const { return most_top_nodes(level) >= kMinTopNodes; }

Roi::Rect CoarseSearch::box(int level) const {
  if (!roi_.empty()) return analysis::bounding_box(roi_[level]);
  const int x = box_.x >> level, y = box_.y >> level;
  const int right = std::min((box_.x + box_.width - 1) >> level, (width_ >> level) - 1);
  const int bottom = std::min((box_.y + box_.height - 1) >> level, (height_ >> level) - 1);
  return {x, y, right - x + 1, bottom - y + 1};
}

const CoarseLattice& CoarseSearch::lattice(Lattices& known, int level, int most_nodes) {
  if (!known[level]) {
    const int width = width_ >> level, height = height_ >> level;
    const Roi::Rect nodes_in = box(level);
    known[level] = lattice_of(field_over(nodes_in, level, most_nodes), level, width, height, nodes_in,
                              roi(level), pool_);
  }
  return *known[level];
}

CoarseField CoarseSearch::search_whole(PyramidSearch& search, int level, FindNodes find) {
  const CoarseLattice& nodes = lattice(whole_, level, most_top_nodes(level));
  CoarseField field = nodes.field;
  finish(field, nodes, (this->*find)(search, nodes));
  return field;
}

std::vector<FoundShift> CoarseSearch::everywhere(PyramidSearch& search, const CoarseLattice& nodes) const {
  if (!largest_motion_) return search.everywhere(nodes);
  const int reduction = nodes.field.reduction;
  const int range = std::max(1, (*largest_motion_ + reduction - 1) / reduction);
  const std::vector<Prediction> at_rest(nodes.searched.size(), Prediction{});
  return search.around(nodes, nodes.searched, at_rest, range);
}

/// Searches squares along the possible places of each node, and keeps the best result of each.
std::vector<FoundShift> CoarseSearch::near_places(PyramidSearch& search, const CoarseLattice& nodes) const {
  const int reduction = nodes.field.reduction;
  const int range = std::max(kLeastBeside, kBesidePlaces / reduction);
  const double spacing = 1.5 * range * reduction, centre = 0.5 * (reduction - 1);
  std::vector<std::int64_t> which;
  std::vector<std::size_t> slots;  // index in nodes.searched of each of `which`
  std::vector<Prediction> predictions;
  for (std::size_t slot = 0; slot < nodes.searched.size(); ++slot) {
    const std::int64_t k = nodes.searched[slot];
    const double x = nodes.x[k] * reduction + centre, y = nodes.y[k] * reduction + centre;
    for (const Place& place : places_(x, y, spacing)) {
      which.push_back(k);
      slots.push_back(slot);
      predictions.push_back(rounded((place.x - x) / reduction, (place.y - y) / reduction));
    }
  }
  const std::vector<FoundShift> found = search.around(nodes, which, predictions, range);
  std::vector<FoundShift> best(nodes.searched.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k].score > best[slots[k]].score) best[slots[k]] = found[k];
  return best;
}

CoarseField CoarseSearch::search_finer(PyramidSearch& search, int level, const CoarseField& coarser) {
  const CoarseLattice& nodes = lattice(finer_, level, std::numeric_limits<int>::max());
  CoarseField field = nodes.field;
  const double centre = 0.5 * (field.reduction - 1);
  for (std::size_t k = 0; k < nodes.x.size(); ++k) {
    const CoarseShift s =
        coarser.at(nodes.x[k] * field.reduction + centre, nodes.y[k] * field.reduction + centre);
    field.u[k] = static_cast<float>(s.u / field.reduction);
    field.v[k] = static_cast<float>(s.v / field.reduction);
  }
  std::vector<std::int64_t> which = nodes.searched;
  std::vector<std::size_t> slots(which.size());  // index in `found` of each of `which`
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  std::vector<Prediction> predictions;
  for (const std::int64_t k : which) predictions.push_back(rounded(field.u[k], field.v[k]));
  std::vector<FoundShift> found(which.size());
  for (int step = 0; step < kFinerSteps && !which.empty(); ++step) {
    const auto results = search.around(nodes, which, predictions, kFinerRange);
    std::size_t again = 0;
    for (std::size_t k = 0; k < which.size(); ++k) {
      found[slots[k]] = results[k];
      if (!results[k].at_border) continue;
      which[again] = which[k];
      slots[again] = slots[k];
      predictions[again++] = rounded(results[k].u, results[k].v);
    }
    which.resize(again);
    slots.resize(again);
    predictions.resize(again);
  }
  finish(field, nodes, found);
  return field;
}

/// Finds the field of the most reduced image. A pattern may have lost its contrast at this reduction, so that
/// larger images are tried while they can be searched as a whole.
CoarseField CoarseSearch::find_top(PyramidSearch& search, FindNodes find) {
  CoarseField field = search_whole(search, levels_ - 1, find);
  for (int level = levels_ - 2; field.confidence < kConfident && level >= 0 && may_search_whole(level);
       --level) {
    CoarseField candidate = search_whole(search, level, find);
    if (candidate.confidence > field.confidence) field = std::move(candidate);
  }
  return field;
}

CoarseField CoarseSearch::find_top(PyramidSearch& search) {
  if (places_ && !largest_motion_) {
    CoarseField field = find_top(search, &CoarseSearch::near_places);
    if (field.confidence >= kLikely) return field;
  }
  return find_top(search, &CoarseSearch::everywhere);
}

CoarseField CoarseSearch::run(PyramidSearch& search) {
  CoarseField field = find_top(search);
  // Level 0 is searched by the points themselves.
  while (field.valid() && field.reduction > 2) {
    CoarseField finer =
        search_finer(search, std::countr_zero(static_cast<unsigned>(field.reduction)) - 1, field);
    if (!finer.valid()) break;
    field = std::move(finer);
  }
  return field;
}

}  // namespace dic::track

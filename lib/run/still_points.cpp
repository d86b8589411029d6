#include "run/still_points.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <ranges>
#include <set>
#include <utility>

namespace dic::run {
namespace {

constexpr int kMostFrames = 8;
constexpr double kStill = 0.05;      ///< px; subsets that hold some of the specimen drift a little
constexpr double kMoved = 0.5;       ///< px, of the points around
constexpr double kQuiet = 0.35;      ///< share of the expected noise that tells drawn pixels from seen ones
constexpr std::size_t kLeast = 3;    ///< points of a group
constexpr double kMostShare = 0.25;  ///< of the points; more is a part of the scene
constexpr int kReach = 2;            ///< steps of the grid between points of a group
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int x_of(const Grid& grid, std::size_t node) { return grid.x(static_cast<int>(node % grid.nx)); }
int y_of(const Grid& grid, std::size_t node) { return grid.y(static_cast<int>(node / grid.nx)); }

/// Calls visit(k) for the nodes k up to kReach steps away.
template <typename Visit>
void visit_around(const Grid& grid, std::size_t node, const Visit& visit) {
  const int i = static_cast<int>(node % grid.nx), j = static_cast<int>(node / grid.nx);
  for (int b = std::max(0, j - kReach); b <= std::min(grid.ny - 1, j + kReach); ++b)
    for (int a = std::max(0, i - kReach); a <= std::min(grid.nx - 1, i + kReach); ++a)
      visit(static_cast<std::size_t>(b) * grid.nx + a);
}

bool is_still(double u, double v) { return std::abs(u) <= kStill && std::abs(v) <= kStill; }

/// Median displacement of about a thousand points; NaN if none was measured.
double median_motion(const Field& field, const NodeValues<double>& u, const NodeValues<double>& v) {
  const std::size_t every = std::max<std::size_t>(1, field.status.size() / 1000);
  std::vector<double> motions;
  for (std::size_t k = 0; k < field.status.size(); k += every)
    if (field.status[k] == Status::ok) motions.push_back(std::hypot(u[k], v[k]));
  if (motions.empty()) return kNone;
  const auto middle = motions.begin() + std::ssize(motions) / 2;
  std::ranges::nth_element(motions, middle);
  return *middle;
}

/// Root mean square of the difference of two images in the subset around a pixel.
double difference(ImageView a, ImageView b, int x, int y, int half) {
  double squares = 0, count = 0;
  visit_scalar(a.type, [&](auto element) {
    using T = decltype(element);
    for (int row = std::max(0, y - half); row <= std::min(a.height - 1, y + half); ++row)
      for (int column = std::max(0, x - half); column <= std::min(a.width - 1, x + half); ++column) {
        const double d =
            static_cast<double>(a.row<T>(row)[column]) - static_cast<double>(b.row<T>(row)[column]);
        squares += d * d;
        count += 1;
      }
  });
  return std::sqrt(squares / count);
}

}  // namespace

void StillPoints::add(const Field& field, ImageView reference, double noise, int subset,
                      const std::function<ImageView()>& image) {
  if (frames_ == kMostFrames || (frames_ > 0 && still_.empty())) return;
  const auto& u = field.image_u.empty() ? field.u : field.image_u;
  const auto& v = field.image_v.empty() ? field.v : field.image_v;
  const double motion = median_motion(field, u, v);
  if (!(motion >= std::max(kMoved, motion_ + kMoved / 2))) return;
  if (frames_++ == 0) {
    grid_ = field.shared_grid();
    still_.resize(field.status.size());
    std::iota(still_.begin(), still_.end(), std::size_t{0});
  }
  std::erase_if(still_,
                [&](std::size_t k) { return field.status[k] != Status::ok || !is_still(u[k], v[k]); });
  if (still_.size() < kLeast) return still_.clear();
  const ImageView current = image();
  if (current.size() != reference.size() || current.type != reference.type) return still_.clear();
  const double limit = std::isnan(noise) ? 0 : kQuiet * std::numbers::sqrt2 * noise;
  std::erase_if(still_, [&](std::size_t k) {
    return difference(reference, current, x_of(*grid_, k), y_of(*grid_, k), subset / 2) > limit;
  });
  motion_ = motion;
  last_.resize(field.status.size());
  for (std::size_t k = 0; k < last_.size(); ++k)
    last_[k] = field.status[k] == Status::ok ? std::hypot(u[k], v[k]) : kNone;
}

/// The still nodes that are near each other, largest group first.
std::vector<StillPoints::Group> StillPoints::groups() const {
  std::vector<Group> groups;
  std::set<std::size_t> open(still_.begin(), still_.end());
  while (!open.empty()) {
    Group group = {open.extract(open.begin()).value()};
    for (std::size_t next = 0; next < group.size(); ++next)
      visit_around(*grid_, group[next], [&](std::size_t k) {
        if (open.erase(k) > 0) group.push_back(k);
      });
    if (group.size() >= kLeast) groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), &Group::size);
  return groups;
}

/// True if the measured nodes around a group have moved. Those that half belong to it may be lost.
bool StillPoints::moves_around(const Group& group) const {
  const std::set<std::size_t> inside(group.begin(), group.end());
  std::set<std::size_t> ring = inside;
  for (int step = 0; step < 2; ++step)
    for (const std::size_t node : std::vector(ring.begin(), ring.end()))
      visit_around(*grid_, node, [&](std::size_t k) { ring.insert(k); });
  std::vector<double> motions;
  for (const std::size_t k : ring)
    if (!inside.contains(k) && !std::isnan(last_[k])) motions.push_back(last_[k]);
  if (motions.empty()) return false;
  const auto middle = motions.begin() + std::ssize(motions) / 2;
  std::ranges::nth_element(motions, middle);
  return *middle >= kMoved;
}

std::string StillPoints::box_of(const Group& group) const {
  const auto range = [&](const auto& position) {
    const auto [least, most] = std::ranges::minmax(group | std::views::transform(position));
    return std::to_string(least) + " to " + std::to_string(most);
  };
  return "x = " + range([this](std::size_t k) { return x_of(*grid_, k); }) +
         ", y = " + range([this](std::size_t k) { return y_of(*grid_, k); });
}

std::string StillPoints::warning() const {
  if (still_.size() < kLeast || static_cast<double>(still_.size()) > kMostShare * grid_->points()) return {};
  constexpr std::size_t kMostBoxes = 3;
  std::string boxes;
  std::size_t points = 0, count = 0;
  for (const Group& group : groups()) {
    if (!moves_around(group)) continue;
    points += group.size();
    if (count++ < kMostBoxes) boxes += (boxes.empty() ? "" : "; ") + box_of(group);
  }
  if (count == 0) return {};
  return std::to_string(points) + " points (" + boxes + (count > kMostBoxes ? "; ..." : "") +
         " px) stand still while those around them move, and their pixels are the same in all frames, as "
         "those of a date, a scale bar or a logo in the image: leave them out of the region of interest.";
}

}  // namespace dic::run

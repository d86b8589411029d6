#include "track/cpu/split_subsets.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace dic::track {

SplitSubsets::SplitSubsets(const Points& points, const HostReference& reference, int step,
                           std::vector<RefinedPoint>& results)
    : points_(points),
      reference_(reference),
      results_(results),
      frame_{points, reference, results},
      radius_(reference.refiner.options().subset / 2),
      step_(step),
      side_(tile_side(reference.refiner.options().subset, step)),
      tiles_x_((points.grid.nx + side_ - 1) / side_),
      tiles_y_((points.grid.ny + side_ - 1) / side_),
      levels_(static_cast<std::size_t>(tiles_x_) * tiles_y_),
      trusted_(results.size()) {}

void SplitSubsets::run(const std::stop_token& stop) {
  find_levels();
  for (std::int64_t i = 0; i < std::ssize(results_); ++i) {
    if (!reference_.trackable(i)) continue;
    trusted_[i] = results_[i].status == Status::ok && !doubtful(i);
    if (!trusted_[i]) open_.push_back(i);
  }
  for (int round = 0; round < kSplitRounds && !open_.empty(); ++round) measure(attempts(round), stop);
  give_up_contradicted();
}

/// The level around every tile.
void SplitSubsets::find_levels() {
  const Grid& grid = points_.grid;
  const int spacing = sample_spacing(side_);
  std::vector<ResidualLevel> tiles(levels_.size());
  for (int tile = 0; tile < std::ssize(tiles); ++tile) {
    std::array<float, kTileSamples * kTileSamples> samples;
    int count = 0;
    const int left = tile % tiles_x_ * side_, top = tile / tiles_x_ * side_;
    for (int j = top; j < std::min(top + side_, grid.ny); j += spacing)
      for (int i = left; i < std::min(left + side_, grid.nx); i += spacing) {
        const std::int64_t point = points_.point_at[std::int64_t{j} * grid.nx + i];
        if (point >= 0 && results_[point].status == Status::ok)
          samples[count++] = results_[point].residual_sd;
      }
    tiles[tile] = level_of(samples.data(), count);
  }
  for (int tile = 0; tile < std::ssize(tiles); ++tile)
    levels_[tile] = level_around(tiles.data(), tiles_x_, tiles_y_, tile % tiles_x_, tile / tiles_x_);
}

ResidualLevel SplitSubsets::level(std::int64_t i) const {
  const std::int64_t node = points_.node_of[i];
  return levels_[node / points_.grid.nx / side_ * tiles_x_ + node % points_.grid.nx / side_];
}

bool SplitSubsets::doubtful(std::int64_t i) const {
  const double subset = 2 * radius_ + 1;
  return is_doubtful(results_[i].zncc, results_[i].residual_sd, level(i), subset * subset);
}

std::int64_t SplitSubsets::trusted_towards(std::int64_t i, Direction towards) const {
  const Grid& grid = points_.grid;
  std::int64_t x = points_.node_of[i] % grid.nx, y = points_.node_of[i] / grid.nx;
  for (int k = 0; k < split_reach(radius_, step_); ++k) {
    x += towards.dx;
    y += towards.dy;
    if (x < 0 || y < 0 || x >= grid.nx || y >= grid.ny) return -1;
    const std::int64_t point = points_.point_at[y * grid.nx + x];
    if (point >= 0 && trusted_[point]) return point;
  }
  return -1;
}

std::vector<SplitSubsets::Attempt> SplitSubsets::attempts(int round) const {
  const ImageView image = reference_.image();
  std::vector<Attempt> out;
  for (const std::int64_t i : open_) {
    const std::size_t first = out.size();
    for (int k = 0; k < kDirections; ++k) {
      const std::int64_t source = trusted_towards(i, direction(k));
      if (source < 0) continue;
      const ShapeParameters start = between(frame_, source, i);
      const auto repeated = [&](const Attempt& other) { return same_start(start, other.start); };
      if (round == 0 && std::any_of(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), repeated))
        continue;
      const SubsetPart part = part_to_measure(i, frame_.x(i), frame_.y(i), round, direction(k), start,
                                              radius_, image.width, image.height);
      if (part.area() > 0) out.push_back({part, start});
    }
  }
  return out;
}

/// Of the accepted measurements of a point that with the highest zncc counts. Attempts of a point follow each
/// other.
void SplitSubsets::measure(const std::vector<Attempt>& attempts, const std::stop_token& stop) {
  std::vector<SubsetPart> parts;
  std::vector<ShapeParameters> starts;
  for (const Attempt& attempt : attempts) {
    parts.push_back(attempt.part);
    starts.push_back(attempt.start);
  }
  std::vector<RefinedPoint> measured(attempts.size());
  reference_.refiner.refine_parts(parts, starts, measured, kSplitIterations, stop);
  std::size_t k = 0;
  std::erase_if(open_, [&](std::int64_t i) {
    const RefinedPoint* best = nullptr;
    for (; k < attempts.size() && parts[k].point == i; ++k)
      if (is_accepted(measured[k], measured[k].shape, starts[k], level(i), parts[k].area()) &&
          (!best || measured[k].zncc > best->zncc))
        best = &measured[k];
    if (best) results_[i] = *best;
    return best != nullptr;
  });
}

/// Do all trusted points around a doubtful one predict its value?
bool SplitSubsets::confirmed(std::int64_t i) const {
  bool any = false;
  for (int k = 0; k < kDirections; ++k) {
    const std::int64_t source = trusted_towards(i, direction(k));
    if (source < 0) continue;
    const ShapeParameters predicted = between(frame_, source, i), &found = results_[i].shape;
    if (std::hypot(found.u - predicted.u, found.v - predicted.v) > kSplitAgreement) return false;
    any = true;
  }
  return any;
}

void SplitSubsets::give_up_contradicted() {
  for (const std::int64_t i : open_)
    if (results_[i].status == Status::ok && !confirmed(i)) results_[i].status = Status::low_correlation;
}

}  // namespace dic::track

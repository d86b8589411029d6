#include "track/cpu/split_subsets.hpp"

#include <algorithm>
#include <utility>

namespace dic::track {

SplitSubsets::SplitSubsets(const PointNodes& points, const HostReference& reference, int step,
                           std::span<RefinedPoint> results)
    : points_(points),
      reference_(reference),
      results_(results),
      frame_{points, reference, results},
      radius_(reference.refiner.options().subset / 2),
      step_(step),
      tiles_(points.grid.nx, points.grid.ny, reference.refiner.options().subset, step),
      levels_(tiles_.count()),
      trusted_(results.size()),
      refuted_(results.size()) {
  static_assert(kDirections <= 16);
}

void SplitSubsets::run(const std::stop_token& stop) {
  find_levels();
  core::for_each_index(reference_.pool, reference_.size(), [&](std::int64_t i) {
    trusted_[i] = reference_.trackable(i) && results_[i].status == Status::ok && !doubtful(i);
  });
  open_ = core::indices_where(reference_.pool, reference_.size(), [&](std::int64_t i) {
    return reference_.trackable(i) && reference_.has_parts(i) && !trusted_[i] &&
           results_[i].status != Status::flat;
  });
  for (int round = 0; round < kSplitRounds && !open_.empty(); ++round) {
    if (round == 1) probe(stop);
    take(measured(round, stop), round);
  }
  for (const std::int64_t i : open_) give_up_contradicted(i);
}

/// The residual level of the samples of a tile.
ResidualLevel SplitSubsets::level_of_tile(int tile) const {
  std::vector<float> samples;
  for (int k = 0; k < kSamples; ++k) {
    const std::int64_t node = sample_node(tiles_, tile, k, points_.grid.nx, points_.grid.ny);
    const std::int64_t point = node < 0 ? -1 : points_.point_at[node];
    if (point >= 0 && results_[point].status == Status::ok) samples.push_back(results_[point].residual_sd);
  }
  const auto count = static_cast<int>(samples.size());
  if (count < kLeastSamples) return {};
  std::ranges::sort(samples);
  return {samples[lower_rank(count)], samples[median_rank(count)], true};
}

void SplitSubsets::find_levels() {
  std::vector<ResidualLevel> of_tiles(tiles_.count());
  reference_.pool.parallel_for(tiles_.count(), 64, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t tile = begin; tile < end; ++tile)
      of_tiles[tile] = level_of_tile(static_cast<int>(tile));
  });
  for (int tile = 0; tile < tiles_.count(); ++tile) {
    std::vector<float> lower, median;
    for (int k = 0; k < kTilesAround; ++k) {
      const int around = tile_around(tiles_, tile, k);
      if (around < 0 || !of_tiles[around].known) continue;
      lower.push_back(of_tiles[around].lower);
      median.push_back(of_tiles[around].median);
    }
    if (lower.empty()) continue;
    std::ranges::sort(lower);
    std::ranges::sort(median);
    const int rank = around_rank(static_cast<int>(lower.size()));
    levels_[tile] = {lower[rank], median[rank], true};
  }
}

ResidualLevel SplitSubsets::level(std::int64_t i) const {
  return levels_[tiles_.of(points_.node_of[i], points_.grid.nx)];
}

bool SplitSubsets::doubtful(std::int64_t i) const {
  const double subset = 2 * radius_ + 1;
  return is_doubtful(results_[i].zncc, results_[i].residual_sd, level(i), subset * subset);
}

std::int64_t SplitSubsets::trusted_towards(std::int64_t i, Direction towards) const {
  return track::trusted_towards(points_.grid.nx, points_.grid.ny, points_.point_at.data(), points_.node_of[i],
                                towards, split_reach(radius_, step_),
                                [this](std::int64_t point) { return trusted_[point] != 0; });
}

std::vector<SplitSubsets::Attempt> SplitSubsets::attempts(int round) const {
  const ImageView image = reference_.image();
  std::vector<Attempt> out;
  for (const std::int64_t i : open_) {
    const std::size_t first = out.size();
    for (int k = 0; k < kDirections; ++k) {
      if (refuted_[i] >> k & 1) continue;
      const std::int64_t source = trusted_towards(i, direction(k));
      if (source < 0) continue;
      const ShapeParameters start = predicted_shape(frame_, source, i);
      const auto repeated = [&](const Attempt& other) { return same_start(start, other.start); };
      if (round == 0 && std::any_of(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), repeated))
        continue;
      CountedPart part =
          part_to_measure({i, frame_.x(i), frame_.y(i), radius_}, direction(k), round, start, image.size());
      if (part.pixels == 0) continue;
      part.part.most_residual = most_part_residual(level(i), part.pixels);
      out.push_back({part, start, k});
    }
  }
  return out;
}

SplitSubsets::Measured SplitSubsets::measured(int round, const std::stop_token& stop) const {
  Measured out{attempts(round), {}};
  std::vector<SubsetPart> parts;
  std::vector<ShapeParameters> starts;
  for (const Attempt& attempt : out.attempts) {
    parts.push_back(attempt.part.part);
    starts.push_back(attempt.start);
  }
  out.results.resize(parts.size());
  reference_.refiner.refine_parts(parts, starts, out.results, kSplitIterations, stop);
  return out;
}

void SplitSubsets::probe(const std::stop_token& stop) {
  const Measured probes = measured(kProbingRound, stop);
  for (std::size_t k = 0; k < probes.attempts.size(); ++k) {
    const Attempt& attempt = probes.attempts[k];
    const RefinedPoint& found = probes.results[k];
    const std::int64_t i = probes.point(k);
    if (is_refuted(found, found.shape, attempt.start, level(i), attempt.part.pixels))
      refuted_[i] |= static_cast<std::uint16_t>(1 << attempt.direction);
  }
}

bool SplitSubsets::is_accepted(const Measured& measured, std::size_t k) const {
  const Attempt& attempt = measured.attempts[k];
  const RefinedPoint& found = measured.results[k];
  return track::is_accepted(found, found.shape, attempt.start, level(measured.point(k)), attempt.part.pixels);
}

void SplitSubsets::take(const Measured& measured, int round) {
  std::size_t k = 0;
  std::erase_if(open_, [&](std::int64_t i) {
    const RefinedPoint* best = nullptr;
    const std::size_t first = k;
    for (; k < measured.attempts.size() && measured.point(k) == i; ++k) {
      const RefinedPoint& found = measured.results[k];
      if (is_accepted(measured, k) && (!best || found.residual_sd < best->residual_sd)) best = &found;
    }
    const bool exhausted = round == 0 && k == first;
    if (best)
      results_[i] = *best;
    else if (exhausted)
      give_up_contradicted(i);
    return best || exhausted;
  });
}

void SplitSubsets::give_up_contradicted(std::int64_t i) {
  const auto towards = [&](Direction direction) { return trusted_towards(i, direction); };
  if (results_[i].status == Status::ok && !is_confirmed(frame_, i, towards))
    results_[i].status = Status::low_correlation;
}

}  // namespace dic::track

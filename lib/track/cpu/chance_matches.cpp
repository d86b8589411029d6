#include "track/cpu/chance_matches.hpp"

#include <algorithm>

namespace dic::track {

ChanceMatches::ChanceMatches(const PointNodes& points, const HostReference& reference,
                             std::span<const float> alternatives, int step, std::span<RefinedPoint> results)
    : points_(points),
      reference_(reference),
      alternatives_(alternatives),
      results_(results),
      frame_{points, reference, results},
      large_(large_group(reference.refiner.options().subset, step)),
      parent_(results.size()),
      members_(results.size()),
      contested_(results.size()) {}

void ChanceMatches::reject() {
  core::for_each_index(reference_.pool, reference_.size(), [&](std::int64_t i) {
    RefinedPoint& p = results_[i];
    if (p.status == Status::ok && is_mirrored(p.shape)) p.status = Status::low_correlation;
  });
  find_groups();
  if (!alternatives_.empty()) find_ambiguous();
  give_up_chance();
}

/// Marks points on repeating texture as ambiguous, unless their group has enough unique points.
void ChanceMatches::find_ambiguous() {
  const double subset = reference_.refiner.options().subset;
  std::vector<std::int32_t> unique(results_.size()), as_good(results_.size());
  const auto repeats = [&](std::int64_t i) {
    return is_as_good(alternatives_[i], results_[i].residual_sd, subset * subset);
  };
  for (std::int64_t i = 0; i < reference_.size(); ++i) {
    if (results_[i].status != Status::ok) continue;
    unique[parent_[i]] += alternatives_[i] == kUnique;
    as_good[parent_[i]] += repeats(i);
  }
  for (std::int64_t i = 0; i < reference_.size(); ++i) {
    const std::int64_t group = parent_[i];
    if (results_[i].status == Status::ok && !is_decided(unique[group], large_) &&
        is_ambiguous(repeats(i), as_good[group], members_[group]))
      results_[i].status = Status::ambiguous;
  }
}

void ChanceMatches::give_up_chance() {
  const std::int64_t trackable = core::count_where(reference_.pool, reference_.size(),
                                                   [&](std::int64_t i) { return reference_.trackable(i); });
  const FrameLevel normal = level();
  core::for_each_index(reference_.pool, reference_.size(), [&](std::int64_t i) {
    RefinedPoint& p = results_[i];
    if (p.status != Status::ok) return;
    const std::int64_t members = members_[parent_[i]];
    const bool suspicious = is_suspicious_group(members, contested_[parent_[i]], large_, trackable);
    if (is_noise_only(p.zncc, p.residual_sd, normal))
      p.status = Status::flat;
    else if (suspicious && !(may_differ(members, large_) && is_explained(p.zncc, p.residual_sd, normal)))
      p.status = Status::low_correlation;
  });
}

/// The first member of a point's group.
std::int64_t ChanceMatches::root(std::int64_t i) const {
  while (parent_[i] != i) i = parent_[i];
  return i;
}

/// One bit per neighbour, in the order of for_each_neighbour: set if the neighbour has a lower index and is
/// linked with the point.
std::uint8_t ChanceMatches::links(std::int64_t i) const {
  unsigned links = 0, bit = 1;
  if (results_[i].status != Status::ok) return 0;
  frame_.for_each_neighbour(i, [&](std::int64_t n) {
    if (n < i && linked(frame_, n, i)) links |= bit;
    bit <<= 1;
  });
  return static_cast<std::uint8_t>(links);
}

void ChanceMatches::find_groups() {
  std::vector<std::uint8_t> links_of(results_.size());
  const auto join = [&](std::int64_t i, std::int64_t from, std::int64_t end) {
    unsigned left = links_of[i];
    if (left == 0) return;
    frame_.for_each_neighbour(i, [&](std::int64_t n) {
      if ((left & 1) && n >= from && n < end) {
        const std::int64_t a = root(i), b = root(n);
        parent_[std::max(a, b)] = std::min(a, b);
      }
      left >>= 1;
    });
  };
  // Each thread joins the points within some rows. Afterwards, these rows are joined with the rows before
  // them.
  const std::int64_t block = std::max<std::int64_t>(4096, 4 * points_.grid.nx);
  reference_.pool.parallel_for(reference_.size(), block, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      parent_[i] = i;
      links_of[i] = links(i);
      join(i, begin, i);
    }
  });
  for (std::int64_t begin = block; begin < reference_.size(); begin += block)
    for (std::int64_t i = begin; i < std::min(begin + points_.grid.nx + 1, reference_.size()); ++i)
      join(i, 0, begin);
  for (std::int64_t i = 0; i < reference_.size(); ++i) {
    parent_[i] = parent_[parent_[i]];  // parents come before their children
    if (results_[i].status == Status::ok) ++members_[parent_[i]];
  }
  for (const std::int64_t i : core::indices_where(reference_.pool, reference_.size(), [&](std::int64_t k) {
         return results_[k].status == Status::ok && members_[parent_[k]] < large_;
       }))
    frame_.for_each_neighbour(i, [&](std::int64_t n) {
      if (reference_.trackable(n) && parent_[n] != parent_[i]) contested_[parent_[i]] = 1;
    });
}

FrameLevel ChanceMatches::level() const {
  std::vector<std::int32_t> residuals(ValueClasses::kCount), misfits(ValueClasses::kCount);
  for (std::int64_t i = 0; i < reference_.size(); ++i) {
    const RefinedPoint& p = results_[i];
    if (p.status != Status::ok || members_[parent_[i]] < large_) continue;
    ++residuals[ValueClasses::of(p.residual_sd)];
    ++misfits[ValueClasses::of(std::max(0.0f, 1 - p.zncc))];
  }
  return {ValueClasses::median(residuals.data()), ValueClasses::median(misfits.data())};
}

}  // namespace dic::track

#include "track/integer_search.hpp"

#include <algorithm>
#include <dic/refine.hpp>

namespace dic::track {

FoundShift found_shift(const Peak& peak, int u, int v) {
  FoundShift out;
  out.found = peak.found;
  if (!peak.found) return out;
  const auto offset = peak_offset(peak.neighbourhood);
  out.u = u + peak.dx + offset[0];
  out.v = v + peak.dy + offset[1];
  out.score = peak.score;
  out.at_border = peak.at_border;
  return out;
}

CorrelateRequest IntegerSearch::request(const SubsetShape& shape, std::span<const PatchPosition> positions,
                                        std::span<const ImageView> current) const {
  CorrelateRequest out;
  out.criterion = Criterion::zncc;
  out.reference = {std::span(&reference_, 1), positions, {shape.width, shape.height}};
  out.search.images = current;
  if (shape.masked) out.reference_mask = std::span(&roi_, 1);
  return out;
}

std::vector<FoundShift> IntegerSearch::around(Correlator& correlator, ImageView current,
                                              std::span<const std::int64_t> which,
                                              std::span<const Prediction> predictions, int range) const {
  constexpr std::size_t kBatch = 1 << 14;
  std::vector<FoundShift> out(which.size());
  std::vector<PatchPosition> references, windows;
  std::vector<Peak> peaks;
  const auto some = [&](const SubsetShape& shape, std::span<const std::size_t> members) {
    references.resize(members.size());
    windows.resize(members.size());
    core::for_each_index(pool_, std::ssize(members), [&](std::int64_t m) {
      const Prediction& p = predictions[members[m]];
      const PatchPosition at = references[m] = shapes_.position(which[members[m]]);
      windows[m] = {0, at.x + p.u - range, at.y + p.v - range};
    });
    CorrelateRequest job = request(shape, references, std::span(&current, 1));
    job.pairing = Pairing::one_to_one;
    job.search.positions = windows;
    job.search.size = {shape.width + 2 * range, shape.height + 2 * range};
    job.shifts = {0, 2 * range, 0, 2 * range};
    correlator.peaks(job, peaks);
    core::for_each_index(pool_, std::ssize(members), [&](std::int64_t m) {
      const Prediction& p = predictions[members[m]];
      out[members[m]] = found_shift(peaks[m], p.u - range, p.v - range);
    });
  };
  shapes_.by_shape(which, [&](const SubsetShape& shape, std::span<const std::size_t> members) {
    for (; !members.empty(); members = members.subspan(std::min(kBatch, members.size())))
      some(shape, members.first(std::min(kBatch, members.size())));
  });
  return out;
}

std::vector<FoundShift> IntegerSearch::everywhere(Correlator& correlator, ImageView current,
                                                  std::span<const std::int64_t> which) const {
  std::vector<FoundShift> out(which.size());
  const PatchPosition whole{};
  std::vector<PatchPosition> references;
  std::vector<Peak> peaks;
  shapes_.by_shape(which, [&](const SubsetShape& shape, std::span<const std::size_t> members) {
    references.clear();
    for (const std::size_t k : members) references.push_back(shapes_.position(which[k]));
    CorrelateRequest job = request(shape, references, std::span(&current, 1));
    job.pairing = Pairing::n_to_m;
    job.search.positions = std::span(&whole, 1);
    job.search.size = {current.width, current.height};
    job.shifts = Shifts::valid({shape.width, shape.height}, {current.width, current.height});
    if (job.shifts.count() == 0) return;
    correlator.peaks(job, peaks);
    for (std::size_t m = 0; m < members.size(); ++m)
      out[members[m]] = found_shift(peaks[m], -references[m].x, -references[m].y);
  });
  return out;
}

}  // namespace dic::track

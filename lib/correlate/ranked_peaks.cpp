#include "correlate/ranked_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dic/shared/peak.hpp>
#include <limits>

namespace dic::correlate {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// A packed surface in which larger is better; shifts that are not defined, and those that do not count, have
/// the value kNone.
class Ranking {
 public:
  Ranking(const float* surface, const Job& job, std::optional<float> least)
      : surface_(surface),
        nx_(job.shifts.nx()),
        ny_(job.shifts.ny()),
        is_ssd_(job.criterion == Criterion::ssd),
        lowest_(lowest(least)) {}

  int nx() const { return nx_; }
  int ny() const { return ny_; }
  float at(int x, int y) const {
    if (x < 0 || y < 0 || x >= nx_ || y >= ny_) return kNone;
    const float value = surface_[static_cast<std::ptrdiff_t>(y) * nx_ + x];
    if (is_ssd_) return value < std::numeric_limits<float>::max() ? -value : kNone;
    return value == 0 ? kNone : value;
  }
  /// A plateau counts once, at its first place.
  bool is_peak(int x, int y) const {
    const float value = at(x, y);
    if (!(value > lowest_)) return false;
    const bool is_first =
        value > at(x - 1, y) && value > at(x - 1, y - 1) && value > at(x, y - 1) && value > at(x + 1, y - 1);
    return is_first && value >= at(x + 1, y) && value >= at(x - 1, y + 1) && value >= at(x, y + 1) &&
           value >= at(x + 1, y + 1);
  }
  float value_of(float score) const { return is_ssd_ ? -score : score; }

 private:
  float lowest(std::optional<float> least) const {
    if (is_ssd_) return least ? std::nextafter(-*least, kNone) : kNone;
    return std::max(0.0F, least ? std::nextafter(*least, kNone) : 0.0F);
  }

  const float* surface_;
  int nx_, ny_;
  bool is_ssd_;
  float lowest_;
};

struct Place {
  float score;
  int x, y;

  /// Order of a heap whose front is the best peak; of equal ones the first by rows.
  bool operator<(const Place& other) const {
    if (score != other.score) return score < other.score;
    return y != other.y ? y > other.y : x > other.x;
  }
};

/// The quadratic surface a + b x + c y + d x^2 + e x y + f y^2 through 3 x 3 scores, by least squares.
struct Quadratic {
  double a, b, c, d, e, f;

  explicit Quadratic(const float (&n)[9]) {
    const double left = n[0] + n[3] + n[6], right = n[2] + n[5] + n[8], middle_x = n[1] + n[4] + n[7];
    const double top = n[0] + n[1] + n[2], bottom = n[6] + n[7] + n[8], middle_y = n[3] + n[4] + n[5];
    a = (5.0 * n[4] + 2.0 * (n[1] + n[3] + n[5] + n[7]) - (n[0] + n[2] + n[6] + n[8])) / 9;
    b = (right - left) / 6, c = (bottom - top) / 6;
    d = (left + right - 2 * middle_x) / 6, f = (top + bottom - 2 * middle_y) / 6;
    e = (n[0] + n[8] - n[2] - n[6]) / 4.0;
  }
};

/// Sets sub-pixel position and standard deviations. The variance of a least-squares shift is that of the
/// residuals, over the curvature of the score and the number of elements.
void refine(const float (&around)[9], Criterion criterion, std::int64_t elements, RankedPeak& peak) {
  const PeakOffset offset = fitted_peak(around);
  peak.x = peak.dx + offset.x, peak.y = peak.dy + offset.y;
  const Quadratic fit(around);
  const double det = 4 * fit.d * fit.f - fit.e * fit.e;
  peak.sigma_x = peak.sigma_y = std::numeric_limits<double>::infinity();
  if (!(fit.d < 0 && det > 0)) return;
  const double top = fit.a + (fit.b * offset.x + fit.c * offset.y) / 2;
  const auto n = static_cast<double>(std::max<std::int64_t>(1, elements));
  double variance = 0;
  if (criterion == Criterion::ssd) {
    variance = 2 * std::max(0.0, -top) / n;
  } else {
    const double score = std::clamp(top, 1e-6, 1.0);
    variance = (1 - score * score) / (score * n);
  }
  peak.sigma_x = std::sqrt(variance * -2 * fit.f / det);
  peak.sigma_y = std::sqrt(variance * -2 * fit.d / det);
}

RankedPeak peak_at(const Ranking& ranking, const Place& place, const Job& job, std::int64_t elements) {
  RankedPeak peak;
  peak.found = true;
  peak.dx = job.shifts.dx_min + place.x, peak.dy = job.shifts.dy_min + place.y;
  peak.score = ranking.value_of(place.score);
  float around[9];
  for (int k = 0; k < 9; ++k) {
    const float value = ranking.at(place.x + k % 3 - 1, place.y + k / 3 - 1);
    peak.at_border |= value == kNone;
    around[k] = value == kNone ? place.score : value;
  }
  refine(around, job.criterion, elements, peak);
  return peak;
}

}  // namespace

void pick_peaks(const float* surface, const Job& job, const PeakOptions& options, std::int64_t elements,
                std::span<RankedPeak> out) {
  const Ranking ranking(surface, job, options.least_score);
  std::vector<Place> heap, taken;
  for (int y = 0; y < ranking.ny(); ++y)
    for (int x = 0; x < ranking.nx(); ++x)
      if (ranking.is_peak(x, y)) heap.push_back({ranking.at(x, y), x, y});
  std::make_heap(heap.begin(), heap.end());
  const auto is_free = [&](const Place& place) {
    return std::ranges::none_of(taken, [&](const Place& better) {
      return std::max(std::abs(place.x - better.x), std::abs(place.y - better.y)) <= options.distance;
    });
  };
  while (!heap.empty() && taken.size() <= out.size()) {
    std::pop_heap(heap.begin(), heap.end());
    if (is_free(heap.back())) {
      if (!taken.empty()) out[taken.size() - 1].next_score = ranking.value_of(heap.back().score);
      if (taken.size() < out.size()) out[taken.size()] = peak_at(ranking, heap.back(), job, elements);
      taken.push_back(heap.back());
    }
    heap.pop_back();
  }
}

std::vector<std::int64_t> counting_elements(const Job& job) {
  const Size size = job.reference.size;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(job.references),
                                   std::int64_t{size.width} * size.height);
  if (job.mask.empty()) return counts;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const PatchPosition& at = job.reference.positions[k];
    const ImageView& mask = job.mask[at.image];
    counts[k] = 0;
    for (int y = at.y; y < at.y + size.height; ++y) {
      const auto* const row = mask.row<std::uint8_t>(y) + at.x;
      counts[k] += std::count_if(row, row + size.width, [](std::uint8_t counted) { return counted != 0; });
    }
  }
  return counts;
}

std::vector<RequestPart> parts_of(const CorrelateRequest& request, const Job& job, std::int64_t most) {
  std::vector<RequestPart> parts;
  if (job.pairs == 0) return parts;
  const std::int64_t per_reference = job.pairs / job.references;
  const bool shares_windows = job.pairing == Pairing::n_to_m;
  const auto part = [&](Pairing pairing, std::int64_t reference, std::int64_t references, std::int64_t first,
                        std::int64_t windows) {
    RequestPart& made = parts.emplace_back(RequestPart{request, reference * per_reference + first});
    made.request.pairing = pairing;
    made.request.reference.positions = request.reference.positions.subspan(reference, references);
    const std::int64_t from = shares_windows ? first : reference * per_reference + first;
    made.request.search.positions = request.search.positions.subspan(from, windows);
  };
  if (per_reference <= most) {
    const std::int64_t step = most / per_reference;
    for (std::int64_t reference = 0; reference < job.references; reference += step) {
      const std::int64_t count = std::min(step, job.references - reference);
      part(job.pairing, reference, count, 0, shares_windows ? per_reference : count * per_reference);
    }
    return parts;
  }
  for (std::int64_t reference = 0; reference < job.references; ++reference)
    for (std::int64_t first = 0; first < per_reference; first += most)
      part(Pairing::one_to_many, reference, 1, first, std::min(most, per_reference - first));
  return parts;
}

}  // namespace dic::correlate

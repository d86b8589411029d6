#pragma once

#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

namespace dic::test {

template <typename T>
constexpr ScalarType scalar_type = std::is_same_v<T, std::uint8_t>    ? ScalarType::u8
                                   : std::is_same_v<T, std::uint16_t> ? ScalarType::u16
                                   : std::is_same_v<T, std::int32_t>  ? ScalarType::i32
                                   : std::is_same_v<T, float>         ? ScalarType::f32
                                                                      : ScalarType::f64;

template <typename T>
std::vector<ImageView> views(const Side& side, const std::vector<T>& values, int bit_depth) {
  std::vector<ImageView> all;
  for (int p = 0; p < side.images; ++p)
    all.push_back({values.data() + static_cast<std::size_t>(p) * side.image_h * side.image_w, scalar_type<T>,
                   side.image_w, side.image_h, static_cast<std::ptrdiff_t>(side.image_w * sizeof(T)),
                   bit_depth});
  return all;
}

/// A case with its images and its request.
template <typename T>
struct Problem {
  Case c;
  std::vector<T> reference, search;
  std::vector<std::uint8_t> mask;  ///< mask of the reference's images; empty: every element counts
  std::vector<ImageView> reference_views, search_views, mask_views;

  explicit Problem(Case the_case) : c(std::move(the_case)) {
    reference = random_pixels<T>(c.reference, 3);
    search = random_pixels<T>(c.search, 4);
  }
  std::string variant;  ///< empty: the planner's choice
  int bit_depth = 0;
  double slack = 0;  ///< largest error of a score beyond float rounding

  CorrelateRequest request(Criterion criterion) {
    reference_views = views(c.reference, reference, bit_depth);
    search_views = views(c.search, search, bit_depth);
    CorrelateRequest request;
    request.pairing = c.pairing;
    request.reference = {reference_views, c.reference.positions, {c.reference.w, c.reference.h}};
    request.search = {search_views, c.search.positions, {c.search.w, c.search.h}};
    request.shifts = c.shifts;
    request.criterion = criterion;
    request.variant = variant;
    mask_views = mask.empty() ? std::vector<ImageView>{} : views(c.reference, mask, 0);
    request.reference_mask = mask_views;
    return request;
  }

  /// Score of one shift, larger is better; NaN if undefined.
  double score(Criterion criterion, std::int64_t k, int dy, int dx) const {
    const Pixels<T> a{c.reference, reference}, b{c.search, search};
    const auto [r, s] = pair_at(c, k);
    const int h = c.reference.h, w = c.reference.w;
    if (!b.holds(s, dy, dx, h, w)) return std::nan("");
    const Pixels<std::uint8_t> counting{c.reference, mask};
    const auto counts = [&](int y, int x) { return mask.empty() || counting.at(r, y, x) != 0; };
    long double n = 0, mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0, ssd = 0;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        if (counts(y, x)) ++n, mean_a += a.at(r, y, x), mean_b += b.at(s, y + dy, x + dx);
    const bool zero_mean = criterion == Criterion::zncc;
    mean_a = zero_mean ? mean_a / n : 0, mean_b = zero_mean ? mean_b / n : 0;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        if (!counts(y, x)) continue;
        const long double p = a.at(r, y, x) - mean_a, q = b.at(s, y + dy, x + dx) - mean_b;
        ab += p * q, aa += p * p, bb += q * q;
        ssd += (p - q) * (p - q);
      }
    }
    if (criterion == Criterion::ssd) return static_cast<double>(-ssd);
    const long double power = aa * bb;
    return power > 0 ? static_cast<double>(ab / std::sqrt(power)) : std::nan("");
  }
  std::vector<double> scores(Criterion criterion, std::int64_t k) const {
    std::vector<double> all;
    for (int dy = c.shifts.dy_min; dy <= c.shifts.dy_max; ++dy)
      for (int dx = c.shifts.dx_min; dx <= c.shifts.dx_max; ++dx) all.push_back(score(criterion, k, dy, dx));
    return all;
  }
};

inline double tolerance(Criterion criterion, double want, double slack) {
  return slack + (criterion == Criterion::ssd ? 1e-6 * std::abs(want) : 2e-6);
}

inline double value_of(double score, Criterion criterion) {
  if (std::isnan(score)) return criterion == Criterion::ssd ? std::numeric_limits<float>::max() : 0.0;
  return criterion == Criterion::ssd ? -score : score;
}

template <typename T>
void check_surfaces(Correlator& correlator, Problem<T>& problem, Criterion criterion) {
  SCOPED_TRACE(problem.c.name + " " + std::string(to_string(criterion)) + " " +
               std::string(to_string(scalar_type<T>)));
  Surfaces got;
  got.bytes.assign(17, std::byte{0xa5});
  correlator.surfaces(problem.request(criterion), got);
  ASSERT_EQ(got.pairs, problem.c.pairs);
  for (std::int64_t k = 0; k < got.pairs; ++k) {
    const std::vector<double> want = problem.scores(criterion, k);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double value = value_of(want[i], criterion);
      ASSERT_NEAR(got.surface<float>(k)[i], value, tolerance(criterion, value, problem.slack))
          << "pair " << k << " shift " << i;
    }
  }
}

template <typename T>
void check_peaks(Correlator& correlator, Problem<T>& problem, Criterion criterion) {
  SCOPED_TRACE(problem.c.name + " " + std::string(to_string(criterion)) + " " +
               std::string(to_string(scalar_type<T>)));
  std::vector<Peak> got(3, Peak{.dx = 77, .found = true});
  correlator.peaks(problem.request(criterion), got);
  ASSERT_EQ(std::ssize(got), problem.c.pairs);
  const Shifts shifts = problem.c.shifts;
  for (std::int64_t k = 0; k < problem.c.pairs; ++k) {
    SCOPED_TRACE("pair " + std::to_string(k));
    const std::vector<double> want = problem.scores(criterion, k);
    const auto at = [&](int dx, int dy) {
      const bool inside =
          dx >= shifts.dx_min && dx <= shifts.dx_max && dy >= shifts.dy_min && dy <= shifts.dy_max;
      return inside ? want[(dy - shifts.dy_min) * shifts.nx() + dx - shifts.dx_min] : std::nan("");
    };
    double best = std::nan(""), second = std::nan("");
    const Peak& peak = got[k];
    for (int dy = shifts.dy_min; dy <= shifts.dy_max; ++dy) {
      for (int dx = shifts.dx_min; dx <= shifts.dx_max; ++dx) {
        best = std::fmax(best, at(dx, dy));
        if (std::abs(dx - peak.dx) > 2 || std::abs(dy - peak.dy) > 2) second = std::fmax(second, at(dx, dy));
      }
    }
    ASSERT_EQ(peak.found, !std::isnan(best));
    if (!peak.found) {
      ASSERT_EQ(peak.score, 0.0f);
      continue;
    }
    const double value = value_of(best, criterion), slack = tolerance(criterion, value, problem.slack);
    ASSERT_NEAR(peak.score, value, slack);
    ASSERT_NEAR(at(peak.dx, peak.dy), best, 2 * slack) << "not the best shift";
    ASSERT_NEAR(peak.second_score, std::isnan(second) ? 0.0 : value_of(second, criterion),
                tolerance(criterion, value_of(second, criterion), problem.slack));
    ASSERT_EQ(peak.at_border, peak.dx == shifts.dx_min || peak.dx == shifts.dx_max ||
                                  peak.dy == shifts.dy_min || peak.dy == shifts.dy_max);
    for (int i = 0; i < 9; ++i) {
      const double neighbour = at(peak.dx + i % 3 - 1, peak.dy + i / 3 - 1);
      const double shown = std::isnan(neighbour) ? peak.score : value_of(neighbour, criterion);
      ASSERT_NEAR(peak.neighbourhood[i], shown, tolerance(criterion, shown, problem.slack))
          << "neighbour " << i;
    }
  }
}

constexpr Criterion scored[] = {Criterion::zncc, Criterion::ncc, Criterion::ssd};

/// Returns false if a variant that was requested by name refuses the job.
template <typename T>
bool can_do(Problem<T>& problem, Criterion criterion) {
  if (problem.variant.empty()) return true;
  const CorrelateShape shape = correlate::check_request(problem.request(criterion)).shape();
  return correlate::unsupported_reason(correlate::backend_named("cuda"), problem.variant, shape).empty();
}

template <typename T>
void check_all_criteria(Correlator& correlator, const std::string& variant = "") {
  for (const Case& c : ncc_cases()) {
    if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 30'000'000) continue;
    Problem<T> problem(c);
    problem.variant = variant;
    for (const Criterion criterion : scored) {
      if (!can_do(problem, criterion)) continue;
      check_surfaces(correlator, problem, criterion);
      check_peaks(correlator, problem, criterion);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

using CudaCorrelator = GpuTest;

/// Largest error of cuda-f32-tensor: rounding of operands, in the instruction and in the sums of its tiles,
/// for windows whose mean is `offset` from the mean of all staged elements; and rounding of the integers for
/// its variances, for elements up to `reach` from the mean.
inline double split_bound(const Side& reference, double offset, double reach, double deviation) {
  const double steps = ((reference.h + 4) / 4) * ((reference.w + 7) / 4), n = reference.h * reference.w;
  return std::ldexp(
      (35 + steps / 4) * std::hypot(1, offset / deviation) + 2 * std::max(n / 1024, 0.5) * reach / deviation,
      -22);
}

enum class MaskKind { half_plane, holes, speckle, corner };

/// Masks with long runs, several runs in a row, or many short runs. corner: hardly any element counts, and
/// none in most references.
inline std::vector<std::uint8_t> make_mask(const Side& side, MaskKind kind) {
  std::mt19937 random(5);
  std::vector<std::uint8_t> mask;
  for (int y = 0; y < side.image_h * side.images; ++y)
    for (int x = 0; x < side.image_w; ++x) {
      const bool counts = kind == MaskKind::half_plane ? 2 * x + y % side.image_h < side.image_w + 5
                          : kind == MaskKind::holes    ? std::hypot(x % 13 - 6, y % 11 - 5) > 3
                          : kind == MaskKind::speckle  ? random() % 3 == 0
                                                       : x < 6 && y < 5;
      mask.push_back(counts ? 1 + random() % 255 : 0);
    }
  return mask;
}

}  // namespace dic::test

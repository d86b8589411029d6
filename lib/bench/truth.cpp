#include "bench/truth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "bench/inputs.hpp"

namespace dic::bench {
namespace {

constexpr double kMostWork = 5e7;           ///< largest number of multiply-adds of all samples together
constexpr std::int64_t kMostPairs = 64;     ///< largest number of sampled pairs
constexpr std::int64_t kPartialPairs = 4;   ///< number of sampled pairs if their shifts must be sampled too
constexpr double kScoreTolerance = 2e-5;    ///< for zncc, ncc and ssd, which are f32 for every input
constexpr double kFloatTolerance = 1e-6;    ///< for sums of f32, rounded at every addition or by transforms
constexpr double kDoubleTolerance = 1e-13;  ///< for sums of f64, likewise

/// `count` different numbers in 0 .. total-1, including the first and the last.
std::vector<std::int64_t> sample_of(std::int64_t total, std::int64_t count, Random& random) {
  if (count >= total) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(total));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::set<std::int64_t> chosen = {0, total - 1};
  while (static_cast<std::int64_t>(chosen.size()) < count) chosen.insert(random.below(total));
  return {chosen.begin(), chosen.end()};
}

/// Elements of a matrix; NaN outside its image and where the mask is zero.
std::vector<double> elements(const Patches& side, std::int64_t index, std::span<const ImageView> masks = {}) {
  const PatchPosition& at = side.positions[static_cast<std::size_t>(index)];
  const ImageView& image = side.images[static_cast<std::size_t>(at.image)];
  std::vector<double> result;
  visit_scalar(image.type, [&]<typename T>(T) {
    for (int y = at.y; y < at.y + side.size.height; ++y)
      for (int x = at.x; x < at.x + side.size.width; ++x) {
        const bool inside = x >= 0 && y >= 0 && x < image.width && y < image.height;
        const bool counts = inside && (masks.empty() || masks[at.image].row<std::uint8_t>(y)[x] != 0);
        result.push_back(counts ? static_cast<double>(image.row<T>(y)[x])
                                : std::numeric_limits<double>::quiet_NaN());
      }
  });
  return result;
}

/// Mean square of the elements that are not NaN.
double mean_square(const std::vector<double>& values) {
  double sum = 0;
  std::int64_t count = 0;
  for (const double v : values)
    if (!std::isnan(v)) sum += v * v, ++count;
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

std::pair<std::int64_t, std::int64_t> members(const CorrelateRequest& request, std::int64_t pair) {
  const auto references = static_cast<std::int64_t>(request.reference.positions.size());
  const auto windows = static_cast<std::int64_t>(request.search.positions.size());
  switch (request.pairing) {
    case Pairing::one_to_one:
      return {pair, pair};
    case Pairing::one_to_many:
      return {0, pair};
    case Pairing::n_to_mn:
      return {pair / (windows / references), pair};
    case Pairing::n_to_m:
      break;
  }
  return {pair / windows, pair % windows};
}

std::int64_t pair_count(const CorrelateRequest& request) {
  const auto references = static_cast<std::int64_t>(request.reference.positions.size());
  const auto windows = static_cast<std::int64_t>(request.search.positions.size());
  return request.pairing == Pairing::n_to_m ? references * windows : windows;
}

/// Largest accepted difference. Integer sums are exact.
double tolerance(Criterion criterion, ScalarType type) {
  if (criterion != Criterion::cross_correlation) return kScoreTolerance;
  if (type == ScalarType::f32) return kFloatTolerance;
  return type == ScalarType::f64 ? kDoubleTolerance : 0;
}

/// The difference between an element of a surface and the true value.
double difference_at(const Surfaces& surfaces, std::int64_t pair, std::int64_t shift, double expected) {
  switch (surfaces.type) {
    case Surfaces::Type::u32: {  // sums are modulo 2^32
      const auto wrapped = static_cast<std::uint32_t>(static_cast<std::uint64_t>(expected));
      return std::abs(static_cast<double>(surfaces.surface<std::uint32_t>(pair)[shift]) - wrapped);
    }
    case Surfaces::Type::u64:
      return std::abs(static_cast<double>(surfaces.surface<std::uint64_t>(pair)[shift]) - expected);
    case Surfaces::Type::i64:
      return std::abs(static_cast<double>(surfaces.surface<std::int64_t>(pair)[shift]) - expected);
    case Surfaces::Type::f32:
      return std::abs(static_cast<double>(surfaces.surface<float>(pair)[shift]) - expected);
    case Surfaces::Type::f64:
      break;
  }
  return std::abs(surfaces.surface<double>(pair)[shift] - expected);
}

}  // namespace

/// Collects differences; a NaN persists.
class Truth::Comparison {
 public:
  explicit Comparison(double tolerance) : tolerance_(tolerance) {}

  void add(double difference) {
    if (!(difference <= check_.max_difference) && !std::isnan(check_.max_difference))
      check_.max_difference = difference;
    ++check_.compared;
  }
  void require(bool condition) { check_.ok = check_.ok && condition; }
  Check result() const {
    Check check = check_;
    check.ok = check.ok && check.max_difference <= tolerance_;
    return check;
  }

 private:
  double tolerance_;
  Check check_;
};

Truth::Truth(const CorrelateRequest& request, std::uint64_t seed)
    : criterion_(request.criterion),
      type_(request.reference.images[0].type),
      ref_h_(request.reference.size.height),
      ref_w_(request.reference.size.width),
      search_h_(request.search.size.height),
      search_w_(request.search.size.width),
      shifts_(request.shifts) {
  Random random(seed);
  const std::int64_t pairs = pair_count(request);
  const auto affordable = static_cast<std::int64_t>(kMostWork / (static_cast<double>(ref_h_) * ref_w_));
  const std::int64_t whole = affordable / std::max<std::int64_t>(shifts_.count(), 1);
  const std::int64_t sampled = std::min({pairs, kMostPairs, std::max(whole, kPartialPairs)});
  for (const std::int64_t pair : sample_of(pairs, sampled, random)) {
    Sample sample = make_sample(request, pair);
    sample.shifts = sample_of(shifts_.count(), std::max<std::int64_t>(affordable / sampled, 16), random);
    for (const std::int64_t shift : sample.shifts)
      sample.values.push_back(value(sample, dy_of(shift), dx_of(shift)));
    samples_.push_back(std::move(sample));
  }
}

Truth::Sample Truth::make_sample(const CorrelateRequest& request, std::int64_t pair) const {
  const auto [reference, window] = members(request, pair);
  Sample sample{.pair = pair,
                .ref = elements(request.reference, reference, request.reference_mask),
                .window = elements(request.search, window),
                .norm = 1,
                .shifts = {},
                .values = {}};
  const auto count = static_cast<double>(
      std::ranges::count_if(sample.ref, [](double element) { return !std::isnan(element); }));
  const double ref_square = count * mean_square(sample.ref),
               window_square = count * mean_square(sample.window);
  if (criterion_ == Criterion::cross_correlation) sample.norm = std::sqrt(ref_square * window_square);
  if (criterion_ == Criterion::ssd) sample.norm = ref_square + window_square;
  return sample;
}

bool Truth::is_defined(const Sample& sample, int dy, int dx) const {
  if (dy < 0 || dx < 0 || dy + ref_h_ > search_h_ || dx + ref_w_ > search_w_) return false;
  const auto exists = [&](int y, int x) { return !std::isnan(sample.window[y * search_w_ + x]); };
  return exists(dy, dx) && exists(dy + ref_h_ - 1, dx) && exists(dy, dx + ref_w_ - 1) &&
         exists(dy + ref_h_ - 1, dx + ref_w_ - 1);
}

double Truth::value(const Sample& sample, int dy, int dx) const {
  if (criterion_ != Criterion::cross_correlation && !is_defined(sample, dy, dx))
    return criterion_ == Criterion::ssd ? std::numeric_limits<float>::max() : 0;
  double n = 0, r = 0, s = 0, rr = 0, ss = 0, rs = 0, dd = 0;
  const int i_end = std::min(ref_h_, search_h_ - dy), j_end = std::min(ref_w_, search_w_ - dx);
  for (int i = std::max(0, -dy); i < i_end; ++i)
    for (int j = std::max(0, -dx); j < j_end; ++j) {
      const double a = sample.ref[i * ref_w_ + j], b = sample.window[(i + dy) * search_w_ + j + dx];
      if (std::isnan(a) || std::isnan(b)) continue;
      n += 1, r += a, s += b, rr += a * a, ss += b * b, rs += a * b, dd += (a - b) * (a - b);
    }
  if (criterion_ == Criterion::cross_correlation) return rs;
  if (criterion_ == Criterion::ssd) return dd;
  if (criterion_ == Criterion::zncc && n > 0) rr -= r * r / n, ss -= s * s / n, rs -= r * s / n;
  return rr > 0 && ss > 0 ? rs / std::sqrt(rr * ss) : 0;
}

int Truth::dy_of(std::int64_t shift) const { return shifts_.dy_min + static_cast<int>(shift / shifts_.nx()); }
int Truth::dx_of(std::int64_t shift) const { return shifts_.dx_min + static_cast<int>(shift % shifts_.nx()); }

bool Truth::is_defined_at(const Sample& sample, std::int64_t shift) const {
  return is_defined(sample, dy_of(shift), dx_of(shift));
}

Check Truth::check(const Surfaces& surfaces) const {
  Comparison comparison(tolerance(criterion_, type_));
  for (const Sample& sample : samples_)
    for (std::size_t k = 0; k < sample.shifts.size(); ++k)
      comparison.add(difference_at(surfaces, sample.pair, sample.shifts[k], sample.values[k]) / sample.norm);
  return comparison.result();
}

Check Truth::check(std::span<const Peak> peaks) const {
  Comparison comparison(kScoreTolerance);
  for (const Sample& sample : samples_) compare_peak(sample, peaks[sample.pair], comparison);
  return comparison.result();
}

/// A peak is right if its values are those at its position and no known value is better.
void Truth::compare_peak(const Sample& sample, const Peak& peak, Comparison& comparison) const {
  const double sign = criterion_ == Criterion::ssd ? -1 : 1;  // sign of a better value
  const auto difference = [&](double got, double expected) { return std::abs(got - expected) / sample.norm; };
  if (!peak.found) {  // right if nothing has contrast
    for (std::size_t k = 0; k < sample.shifts.size(); ++k)
      comparison.require(!is_defined_at(sample, sample.shifts[k]) || sample.values[k] == 0);
    return;
  }
  comparison.require(shifts_.dx_min <= peak.dx && peak.dx <= shifts_.dx_max && shifts_.dy_min <= peak.dy &&
                     peak.dy <= shifts_.dy_max && is_defined(sample, peak.dy, peak.dx));
  if (!comparison.result().ok) return;
  for (int k = 0; k < 9; ++k) {
    const int dy = peak.dy + k / 3 - 1, dx = peak.dx + k % 3 - 1;
    const bool inside =
        dy >= shifts_.dy_min && dy <= shifts_.dy_max && dx >= shifts_.dx_min && dx <= shifts_.dx_max;
    const bool defined = inside && is_defined(sample, dy, dx);
    comparison.add(difference(peak.neighbourhood[k], defined ? value(sample, dy, dx) : peak.score));
  }
  comparison.add(difference(peak.score, value(sample, peak.dy, peak.dx)));
  for (std::size_t k = 0; k < sample.shifts.size(); ++k)
    if (is_defined_at(sample, sample.shifts[k]))
      comparison.add(std::max(0.0, sign * (sample.values[k] - peak.score) / sample.norm));
}

}  // namespace dic::bench

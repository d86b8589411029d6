#include "analysis/self_similarity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <dic/correlate.hpp>
#include <dic/refine.hpp>
#include <dic/shared/trust_rules.hpp>
#include <limits>
#include <opencv2/core.hpp>
#include <optional>
#include <span>
#include <utility>

#include "analysis/image_pyramid.hpp"

namespace dic::analysis {
namespace {

constexpr int kSamples = 7;          // number of samples along each axis
constexpr int kSmallestLevel = 96;   // shorter side of a level of the pyramid, px
constexpr int kMainLobe = 3;         // a match closer than this is the sample itself, px
constexpr float kRepeats = 0.7f;     // zncc of a sample with another place that is examined more closely
constexpr int kLeastRepeats = 3;     // samples that must repeat at the same distance
constexpr std::size_t kPeriods = 6;  // number of periods that every point is compared at, in both directions
constexpr float kSure = 0.9f;        // zncc of another match that ends the search
constexpr int kIterations = 10;      // iterations of a match, whose start is good if it is one
constexpr int kFarRepeat = 32;       // shortest period, px, at which motions are taken to be the smallest
constexpr double kEverywhere =
    0.9;  // share of the points that have another match if all of a texture repeats
constexpr float kRepeatsOverall = 0.3F;  // autocorrelation of an image that may repeat itself
constexpr double kLeastOverlap = 0.15;   // share of the image that overlaps itself at the largest distance
constexpr std::size_t kFarPeriods = 8;   // number of peaks of the autocorrelation that are looked at

/// Sizes of the search in a level, px: large samples where blobs are large, within distances that the next
/// level does not resolve.
struct LevelSearch {
  int side, reach;
};
constexpr LevelSearch search_of(int level) { return level == 0 ? LevelSearch{41, 8} : LevelSearch{21, 15}; }

struct Offset {
  double u, v;
  double length() const { return std::hypot(u, v); }
};

/// A distance at which the texture repeats itself.
struct Period {
  Offset at;
  int samples;
};

/// The largest displacement between two matches that the search can both reach, px.
double reachable(const TrackOptions& options) {
  return options.search ? 2.0 * *options.search : std::numeric_limits<double>::infinity();
}

/// Autocorrelation of an 8-bit image without its mean, 1 at distance 0, per px of overlap; distance (x, y) is
/// at row y modulo height.
cv::Mat autocorrelation_of(ImageView image) {
  const int rows = cv::getOptimalDFTSize(2 * image.height), columns = cv::getOptimalDFTSize(2 * image.width);
  cv::Mat padded(rows, columns, CV_32F, cv::Scalar(0));
  double sum = 0;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) sum += image.row<std::uint8_t>(y)[x];
  const double mean = sum / (double(image.width) * image.height);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      padded.at<float>(y, x) = static_cast<float>(image.row<std::uint8_t>(y)[x] - mean);
  cv::Mat spectrum, products;
  cv::dft(padded, spectrum, 0, image.height);
  cv::mulSpectrums(spectrum, spectrum, products, 0, true);
  cv::idft(products, padded, cv::DFT_REAL_OUTPUT | cv::DFT_SCALE);
  return padded;
}

/// Peaks of the autocorrelation of an 8-bit image at distances of more than `reach` px along an axis, one of
/// each pair of opposite ones: those of most pixels, so that short distances come before their multiples.
std::vector<Offset> peaks_of_autocorrelation(ImageView image, int reach) {
  const cv::Mat products = autocorrelation_of(image);
  const double area = double(image.width) * image.height, variance = products.at<float>(0, 0) / area;
  if (!(variance > 0)) return {};
  const auto share = [&](int dx, int dy) {
    return (1 - double(std::abs(dx)) / image.width) * (1 - double(std::abs(dy)) / image.height);
  };
  const auto at = [&](int dx, int dy) {
    return products.at<float>(dy < 0 ? dy + products.rows : dy, dx < 0 ? dx + products.cols : dx) /
           (variance * area * share(dx, dy));
  };
  std::vector<std::pair<double, Offset>> peaks;
  for (int dy = 0; dy < image.height - 1; ++dy)
    for (int dx = 2 - image.width; dx < image.width - 1; ++dx) {
      if (std::max(std::abs(dx), dy) <= reach || (dy == 0 && dx < 0) || share(dx, dy) < kLeastOverlap)
        continue;
      const double score = at(dx, dy);
      if (score < kRepeatsOverall) continue;
      bool highest = true;
      for (int n = 0; n < 9 && highest; ++n) highest = at(dx + n % 3 - 1, dy + n / 3 - 1) <= score;
      if (highest) peaks.push_back({score * share(dx, dy), {double(dx), double(dy)}});
    }
  std::ranges::sort(peaks, [](const auto& a, const auto& b) { return a.first > b.first; });
  if (peaks.size() > kFarPeriods) peaks.resize(kFarPeriods);
  std::vector<Offset> offsets;
  for (const auto& [score, offset] : peaks) offsets.push_back(offset);
  return offsets;
}

class SelfSimilarity {
 public:
  SelfSimilarity(const TrackOptions& options, ImageView reference, ImageView roi,
                 const fields::Points& points, core::ThreadPool& pool)
      : options_(options),
        reference_(reference),
        roi_(roi),
        points_(points),
        reach_(reachable(options)),
        pool_(pool),
        correlator_(correlate::open_correlator("cpu", pool)) {}

  Repeats run() {
    if (reach_ < kMainLobe) return {};
    const std::vector<std::int64_t> where = samples();
    look_through_pyramid(where);
    choose_periods();
    if (!periods_.empty()) confirm_periods(where);
    if (periods_.empty()) return {};
    std::vector<float> alternatives = by_point();
    if (const std::optional<int> motion = smallest_motions(alternatives)) return {{}, motion};
    return {std::move(alternatives), {}};
  }

 private:
  /// Returns points on a coarse lattice.
  std::vector<std::int64_t> samples() const {
    const Grid& grid = points_.grid();
    std::vector<std::int64_t> out;
    for (int j = 0; j < kSamples; ++j)
      for (int i = 0; i < kSamples; ++i) {
        const std::int64_t column = (2 * i + 1) * std::int64_t{grid.nx} / (2 * kSamples),
                           row = (2 * j + 1) * std::int64_t{grid.ny} / (2 * kSamples);
        const std::int64_t point = points_.nodes->point_at[row * grid.nx + column];
        if (point >= 0 && std::find(out.begin(), out.end(), point) == out.end()) out.push_back(point);
      }
    return out;
  }

  void look_through_pyramid(const std::vector<std::int64_t>& where) {
    std::vector<Image> levels;
    levels.push_back(stretched(reference_, pool_));
    for (int level = 0;; ++level) {
      const Image& image = levels.back();
      if (std::min(image.width(), image.height()) < kSmallestLevel) return;
      look_at(image.view(), level, where);
      if (std::min(image.width(), image.height()) < 2 * kSmallestLevel)
        look_farther(image.view(), level, where);
      levels = pyramid(std::move(levels.back()), 2, pool_);
    }
  }

  /// Looks for distances that the samples do not reach, in the autocorrelation of the most reduced image.
  void look_farther(ImageView level, int number, const std::vector<std::int64_t>& where) {
    std::vector<Offset> found = peaks_of_autocorrelation(level, search_of(number).reach);
    if (found.empty()) return;
    for (Offset& at : found) at = {at.u * (1 << number), at.v * (1 << number)};
    const std::vector<Image> levels = pyramid(stretched(reference_, pool_), number + 1, pool_);
    for (const Offset& at : found) add_far_period(levels, at, where);
  }

  /// Makes a distance exact, from the most reduced image to the full size, and adds it if samples repeat.
  void add_far_period(const std::vector<Image>& levels, Offset at, const std::vector<std::int64_t>& where) {
    int samples = 0;
    for (int number = static_cast<int>(levels.size()) - 1; number >= 0; --number) {
      const int reduction = 1 << number;
      const PatchPosition near{0, static_cast<int>(std::lround(at.u / reduction)),
                               static_cast<int>(std::lround(at.v / reduction))};
      samples = look_near(levels[number].view(), number, near, where);
      if (samples < kLeastRepeats) return;
      at = {(near.x + best_.u) * reduction, (near.y + best_.v) * reduction};
    }
    if (std::max(std::abs(at.u), std::abs(at.v)) > reach_) return;
    periods_.push_back({at, samples});
  }

  /// Compares samples with the places at about the distance `near`. Returns how many repeat there; best_
  /// receives the place of the highest mean score, relative to `near`.
  int look_near(ImageView level, int number, const PatchPosition& near,
                const std::vector<std::int64_t>& where) {
    constexpr int reach = 3, side = 2 * reach + 1;
    const int patch = search_of(number).side;
    if (!compare(level, number, where, near, patch, reach)) return 0;
    std::array<double, side * side> mean{};
    int samples = 0;
    for (std::int64_t pair = 0; pair < surfaces_.pairs; ++pair) {
      const float* scores = surfaces_.surface<float>(pair);
      if (*std::max_element(scores, scores + mean.size()) < kRepeats) continue;
      ++samples;
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += scores[k];
    }
    const auto best = static_cast<int>(std::ranges::max_element(mean) - mean.begin());
    const int column = best % side, row = best / side;
    best_ = {double(column - reach), double(row - reach)};
    return samples;
  }

  /// Correlates samples with windows at a distance from them, +-reach. Returns false if there are none.
  bool compare(ImageView level, int number, const std::vector<std::int64_t>& where,
               const PatchPosition& distance, int side, int reach) {
    const int reduction = 1 << number;
    std::vector<PatchPosition> references, windows;
    for (const std::int64_t i : where) {
      const int x = points_.x[i] / reduction - side / 2, y = points_.y[i] / reduction - side / 2;
      const int wx = x + distance.x - reach, wy = y + distance.y - reach, window = side + 2 * reach;
      if (x < 0 || y < 0 || x + side > level.width || y + side > level.height) continue;
      const bool is_far = distance.x != 0 || distance.y != 0;
      if (is_far && (wx < 0 || wy < 0 || wx + window > level.width || wy + window > level.height)) continue;
      references.push_back({0, x, y});
      windows.push_back({0, wx, wy});
    }
    if (references.empty()) return false;
    CorrelateRequest job;
    job.criterion = Criterion::zncc;
    job.reference = {std::span(&level, 1), references, {side, side}};
    job.search = {std::span(&level, 1), windows, {side + 2 * reach, side + 2 * reach}};
    job.shifts = {0, 2 * reach, 0, 2 * reach};
    correlator_.surfaces(job, surfaces_);
    return true;
  }

  /// Compares samples with their surroundings in one level.
  void look_at(ImageView level, int number, const std::vector<std::int64_t>& where) {
    const auto [side, reach] = search_of(number);
    if (!compare(level, number, where, {}, side, reach)) return;
    for (std::int64_t pair = 0; pair < surfaces_.pairs; ++pair)
      take_peaks(surfaces_.surface<float>(pair), reach, 1 << number);
  }

  /// Takes peaks from one half of the shifts, since opposite shifts are equivalent.
  void take_peaks(const float* scores, int reach, int reduction) {
    const int nx = 2 * reach + 1;
    for (int b = reach; b < 2 * reach; ++b)
      for (int a = 1; a < 2 * reach; ++a) {
        const int dx = a - reach, dy = b - reach;
        if (dy == 0 && dx < 0) continue;
        const float score = scores[b * nx + a];
        if (score < kRepeats || std::max(std::abs(dx), dy) < kMainLobe) continue;
        bool highest = true;
        for (int n = 0; n < 9; ++n)
          highest = highest && scores[(b + n / 3 - 1) * nx + a + n % 3 - 1] <= score;
        if (highest) add_period({double(dx) * reduction, double(dy) * reduction}, 1.5 * reduction);
      }
  }

  /// Counts a sample that repeats itself at a distance, known to +-`same`.
  void add_period(const Offset& period, double same) {
    if (std::max(std::abs(period.u), std::abs(period.v)) > reach_) return;
    for (Period& known : periods_) {
      if (std::hypot(known.at.u - period.u, known.at.v - period.v) > same) continue;
      ++known.samples;
      return;
    }
    periods_.push_back({period, 1});
  }

  /// Keeps the shortest of the distances at which several samples repeat.
  void choose_periods() {
    std::erase_if(periods_, [](const Period& period) { return period.samples < kLeastRepeats; });
    std::sort(periods_.begin(), periods_.end(),
              [](const Period& a, const Period& b) { return a.at.length() < b.at.length(); });
    if (periods_.size() > kPeriods) periods_.resize(kPeriods);
  }

  /// Matches subsets of the reference with the reference itself.
  class Matcher {
   public:
    Matcher(const SelfSimilarity& of, std::span<const int> x, std::span<const int> y)
        : refiner_(refine::open_refiner(with_few_iterations(of.options_.refine), "cpu", of.pool_)) {
      refiner_.set_reference(of.reference_, x, y, of.roi_);
      refiner_.set_current(of.reference_);
      for (std::int64_t i = 0; i < std::ssize(x); ++i)
        if (refiner_.reference_status(i) == Status::ok) usable_.push_back(i);
    }
    const std::vector<std::int64_t>& usable() const { return usable_; }
    /// Matches the points `which` around the offset `at`; results are in that order.
    std::vector<RefinedPoint> match(const std::vector<std::int64_t>& which, const Offset& at) const {
      ShapeParameters start;
      start.u = at.u;
      start.v = at.v;
      std::vector<RefinedPoint> found(which.size());
      refiner_.refine(which, std::vector(which.size(), start), found);
      return found;
    }

   private:
    static RefineOptions with_few_iterations(RefineOptions options) {
      options.max_iterations = std::min(options.max_iterations, kIterations);
      return options;
    }

    Refiner refiner_;
    std::vector<std::int64_t> usable_;
  };

  /// Keeps the periods at which several samples, as subsets of full size, match.
  void confirm_periods(const std::vector<std::int64_t>& where) {
    std::vector<int> x, y;
    for (const std::int64_t i : where) {
      x.push_back(points_.x[i]);
      y.push_back(points_.y[i]);
    }
    const Matcher matcher(*this, x, y);
    std::erase_if(periods_, [&](const Period& period) {
      std::int64_t matches = 0;
      for (const RefinedPoint& p : matcher.match(matcher.usable(), period.at)) matches += is_another_match(p);
      return matches < kLeastRepeats;
    });
  }

  /// Matches every point with the reference around all periods.
  std::vector<float> by_point() {
    std::vector<float> best(points_.size(), track::kNoAlternative);
    const Matcher matcher(*this, points_.x, points_.y);
    std::vector<std::int64_t> which = matcher.usable();
    const std::vector<std::int64_t> all = which;
    usable_ = std::ssize(all);
    for (const Period& period : periods_)
      for (const int sign : {1, -1}) {
        const std::vector<RefinedPoint> found =
            matcher.match(which, {sign * period.at.u, sign * period.at.v});
        std::vector<std::int64_t> again;
        for (std::size_t k = 0; k < which.size(); ++k) {
          const bool other = is_another_match(found[k]);
          if (other) best[which[k]] = std::min(best[which[k]], found[k].residual_sd);
          if (!other || found[k].zncc < kSure) again.push_back(which[k]);
        }
        which = std::move(again);
      }
    const bool any = std::any_of(best.begin(), best.end(), [](float r) { return r < track::kNoAlternative; });
    if (!any) return {};
    mark_unique(all, best);
    return best;
  }

  /// The motions to look for if the whole texture repeats itself, no subset of it is unique, and the next
  /// match is so far away that the smallest motion is surely meant; else none.
  std::optional<int> smallest_motions(const std::vector<float>& alternatives) const {
    const double shortest = periods_.front().at.length();
    if (options_.search || shortest < std::max(kFarRepeat, options_.refine.subset)) return {};
    const auto repeated = std::ranges::count_if(
        alternatives, [](float other) { return other >= 0 && other < track::kNoAlternative; });
    if (static_cast<double>(repeated) < kEverywhere * static_cast<double>(usable_)) return {};
    return static_cast<int>(shortest / 4);
  }

  bool is_another_match(const RefinedPoint& p) const {
    const double distance = std::max(std::abs(p.shape.u), std::abs(p.shape.v));
    return p.status == Status::ok && distance >= kMainLobe && distance <= reach_;
  }

  /// Marks points that have no other match, and whose neighbours have none either.
  void mark_unique(const std::vector<std::int64_t>& which, std::vector<float>& best) const {
    const Grid& grid = points_.grid();
    const std::vector<float> before = best;
    for (const std::int64_t i : which) {
      bool unique = before[i] == track::kNoAlternative;
      track::for_each_neighbour(
          grid.nx, grid.ny, points_.nodes->point_at.data(), points_.nodes->node_of[i],
          [&](std::int64_t n) { unique = unique && before[n] == track::kNoAlternative; });
      if (unique) best[i] = track::kUnique;
    }
  }

  const TrackOptions& options_;
  const ImageView reference_, roi_;
  const fields::Points& points_;
  const double reach_;
  core::ThreadPool& pool_;
  Correlator correlator_;
  Surfaces surfaces_;
  std::vector<Period> periods_;
  Offset best_{};            ///< see look_near
  std::int64_t usable_ = 0;  ///< number of points whose subset can be matched
};

}  // namespace

Repeats find_repeats(const TrackOptions& options, ImageView reference, ImageView roi,
                     const fields::Points& points, core::ThreadPool& pool) {
  return SelfSimilarity(options, reference, roi, points, pool).run();
}

}  // namespace dic::analysis

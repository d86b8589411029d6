#include "match/pose_search.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <numbers>
#include <numeric>

#include "match/box.hpp"
#include "match/loose_motion.hpp"
#include "match/quintic_spline.hpp"

namespace dic::match {
namespace {

using pose::Freedom;

constexpr double kDegree = std::numbers::pi / 180;
constexpr double kPoseStep = 1.3;  ///< distance of neighbouring coarse poses at the template's rim, px
constexpr int kTileRows = 32, kTileColumns = 62;  ///< places that one task searches
/// Amount by which an exact copy's score may be too low.
constexpr double kScoreRounding = 1e-6;
constexpr int kPadded = 64 + 64;        ///< columns of a row of scores: the tile, its border, whole vectors
constexpr int kMostCandidates = 600;    ///< of the coarsest level, but
constexpr double kRise = 0.05;          ///< amount by which full resolution may raise a score
constexpr int kFewCandidates = 16;      ///< where one match is searched near an earlier pose
constexpr int kCandidatesPerMatch = 6;  ///< at least so many per match that is wanted
constexpr int kFullContext = 12;        ///< px around an instance of which the spline is made
constexpr double kNearlyAsGood =
    0.03;                             ///< loss of quality up to which another pose is looked at more closely
constexpr double kLeastOfAll = 0.75;  ///< quality of a candidate that is refined with all pixels
constexpr double kMostlyVisible = 0.8;  ///< share of a template from which it is seen nearly as a whole
constexpr double kSameUnit = 0.25;      ///< px, in which a pose is the same after all pixels counted
constexpr double kMinutePixels = 6;  ///< tolerance of the ends of ranges, in px at the rim of full resolution

/// Correlation of the gradients below which the score is reduced. Few pixels correlate by chance, so that
/// small templates demand more: kStructureOfFew up to kFew pixels, falling to kStructure at kMany.
constexpr double kStructure = 0.75, kStructureOfFew = 0.9;
constexpr int kFew = 900, kMany = 2000;

double demanded_structure(int pixels) {
  const double share = std::clamp(static_cast<double>(pixels - kFew) / (kMany - kFew), 0.0, 1.0);
  return kStructureOfFew + share * (kStructure - kStructureOfFew);
}

double normalized(double degrees) {
  const double turned = std::remainder(degrees, 360.0);
  return turned <= -180 ? turned + 360 : turned;
}

Freedom freedom_of(const MatchOptions& options) {
  if (options.rotation_range && options.scale_range) return Freedom::similarity;
  return options.rotation_range ? Freedom::rotation : Freedom::scale;
}

double least_scale(const MatchOptions& options) {
  return options.scale_range ? options.scale_range->min : *std::ranges::min_element(options.scales);
}

ImageView part_of(ImageView image, int x, int y, int width, int height) {
  image.data = static_cast<const std::byte*>(image.data) + y * image.row_bytes +
               static_cast<std::ptrdiff_t>(x * size_of(image.type));
  image.width = width, image.height = height;
  return image;
}

CoarseImage coarse_image(const FloatImage& from, const FloatImage* mask, int margin) {
  CoarseImage image;
  image.width = from.width, image.height = from.height, image.margin = margin;
  image.stride = from.width + 2 * margin + kPadded;
  const std::size_t size = static_cast<std::size_t>(image.stride) * (from.height + 2 * margin);
  for (auto* plane :
       {&image.values, &image.squares, &image.counts, &image.sum, &image.sum_squares, &image.number})
    plane->assign(size + kPadded, 0.0F);
  double mean = 0;
  for (const float v : from.values) mean += v;
  mean /= static_cast<double>(std::max<std::size_t>(1, from.values.size()));
  image.mean = mean;
  for (int y = 0; y < from.height; ++y) {
    const std::ptrdiff_t first = image.place(0, y);
    double sum = 0, squares = 0, number = 0;
    for (int x = 0; x < from.width; ++x) {
      const bool counts = !mask || mask->row(y)[x] != 0;
      image.has_mask |= !counts;
      const float v = counts ? from.row(y)[x] - static_cast<float>(mean) : 0.0F;
      image.values[first + x] = v;
      image.squares[first + x] = v * v;
      image.counts[first + x] = counts ? 1.0F : 0.0F;
      image.sum[first + x] = static_cast<float>(sum);
      image.sum_squares[first + x] = static_cast<float>(squares);
      image.number[first + x] = static_cast<float>(number);
      number += counts;
      sum += v, squares += static_cast<double>(v) * v;
    }
    const std::ptrdiff_t behind = first + from.width, count = margin + kPadded;
    std::fill_n(image.sum.begin() + behind, count, static_cast<float>(sum));
    std::fill_n(image.sum_squares.begin() + behind, count, static_cast<float>(squares));
    std::fill_n(image.number.begin() + behind, count, static_cast<float>(number));
  }
  return image;
}

double variance(const CoarseImage& image) {
  double squares = 0;
  for (const float s : image.squares) squares += s;
  return squares / std::max(1.0, static_cast<double>(image.width) * image.height);
}

SampleImage sample_image(const FloatImage& image, const FloatImage* mask) {
  return {.values = image.values.data(),
          .stride = image.width,
          .width = image.width,
          .height = image.height,
          .sampling = Sampling::bilinear,
          .offset = 0,
          .mask = mask ? mask->values.data() : nullptr};
}

}  // namespace

SearchLimit::SearchLimit(std::stop_token stop, int timeout_ms) : stop_(std::move(stop)) {
  if (timeout_ms > 0) end_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
}

bool SearchLimit::is_over() const {
  if (stop_.stop_requested()) throw Cancelled("Template matching was cancelled.");
  return end_ && std::chrono::steady_clock::now() >= *end_;
}

ImagePyramid::ImagePyramid(ImageView image, ImageView mask, core::ThreadPool& pool)
    : image_(image), levels_(1) {
  if (mask.empty()) return;
  masks_.push_back(float_image(mask, pool));
  for (float& v : masks_[0].values) v = v != 0 ? 1.0F : 0.0F;
}

void ImagePyramid::require(int level, core::ThreadPool& pool) {
  while (static_cast<int>(levels_.size()) <= level) {
    levels_.push_back(levels_.size() == 1 ? reduced(image_, pool) : reduced(levels_.back(), pool));
    if (!masks_.empty()) masks_.push_back(reduced_mask(masks_.back()));
  }
}

void ImagePyramid::require_full(core::ThreadPool& pool) {
  if (levels_[0].values.empty()) levels_[0] = float_image(image_, pool);
}

PoseSearch::PoseSearch(const Template& source, const MatchOptions& options, core::ThreadPool& pool)
    : options_(options),
      pool_(pool),
      template_(source, least_scale(options), pool),
      freedom_(freedom_of(options)),
      refiners_(pool.size()) {
  const TemplateLevel& top = template_.level(template_.top());
  const double largest =
      options.scale_range ? options.scale_range->max : *std::ranges::max_element(options.scales);
  const double rim = std::max(1.0, top.rim),
               step = kPoseStep / (rim * std::sqrt(largest * least_scale(options)));
  if (options.rotation_range) {
    const double range = std::min(360.0, options.rotation_range->max - options.rotation_range->min) * kDegree;
    full_circle_ = range > 2 * std::numbers::pi - 1e-9;
    const int count = pose::pose_count(range, step);
    for (int k = 0; k < count; ++k)
      angles_.push_back(options.rotation_range->min * kDegree + range * (full_circle_ ? k : k + 0.5) / count);
  } else {
    for (const double degrees : options.rotations) angles_.push_back(degrees * kDegree);
  }
  if (options.scale_range) {
    const double low = std::log(options.scale_range->min), range = std::log(options.scale_range->max) - low;
    const int count = pose::pose_count(range, kPoseStep / rim);
    for (int k = 0; k < count; ++k) scales_.push_back(std::exp(low + range * (k + 0.5) / count));
  } else {
    scales_ = options.scales;
  }
}

double PoseSearch::top_threshold() const { return std::max(0.25, 0.6 * options_.threshold); }

double PoseSearch::threshold_at(int level) const {
  // The coarser the level, the more of the contrast is lost and the farther off is the pose.
  const double share = level == template_.top() ? 0.55 : std::max(0.75, 0.95 - 0.05 * level);
  return options_.threshold * share;
}

std::vector<PoseSearch::Candidate> PoseSearch::coarse(const ImagePyramid& pyramid,
                                                      const std::vector<int>& wanted, const Effort& effort) {
  const SearchLimit& limit = effort.limit;
  const int level = template_.top();
  const int poses = static_cast<int>(angles_.size() * scales_.size());
  const int turns = static_cast<int>(angles_.size()), sizes = static_cast<int>(scales_.size());
  const double largest = *std::ranges::max_element(scales_);
  const int margin = static_cast<int>(std::ceil(largest * template_.level(level).rim)) + 2;
  const CoarseImage image = coarse_image(pyramid.level(level), pyramid.mask(level), margin);
  if (pattern_stride_ != image.stride) patterns_.assign(poses, {});
  pattern_stride_ = image.stride;
  pool_.parallel_for(std::ssize(wanted), 1, [&](std::int64_t k, std::int64_t, int) {
    CoarsePattern& pattern = patterns_[wanted[k]];
    if (pattern.elements.empty())
      pattern =
          template_.coarse_pattern(angles_[wanted[k] % turns], scales_[wanted[k] / turns], image.stride);
  });
  std::vector<char> is_wanted(poses, 0);
  for (const int p : wanted) is_wanted[p] = 1;
  const CoarseRules rules{.least_variance = static_cast<float>(1e-3 * variance(image) + 1e-12),
                          .any_polarity = options_.ignore_polarity};
  const int tiles_x = (image.width + kTileColumns - 1) / kTileColumns;
  const int tiles_y = (image.height + kTileRows - 1) / kTileRows;
  const auto threshold = static_cast<float>(top_threshold());
  constexpr int kRows = kTileRows + 2, kPlane = kRows * kPadded;
  std::vector<std::vector<Candidate>> found(pool_.size());
  std::vector<std::vector<float>> memory(pool_.size());
  pool_.parallel_for(
      static_cast<std::int64_t>(tiles_x) * tiles_y, 1, [&](std::int64_t tile, std::int64_t, int worker) {
        if (limit.is_over()) return;
        std::vector<float>& scores = memory[worker];
        scores.resize(static_cast<std::size_t>(poses) * kPlane);
        // Places -1 .. rows and -1 .. columns of the tile: its border decides about local maxima.
        const int x0 = static_cast<int>(tile % tiles_x) * kTileColumns - 1;
        const int y0 = static_cast<int>(tile / tiles_x) * kTileRows - 1;
        const int rows = std::min(kRows, image.height - y0 + 1),
                  columns = std::min(kTileColumns + 2, image.width - x0 + 1);
        for (const int p : wanted) {
          float* plane = scores.data() + static_cast<std::ptrdiff_t>(p) * kPlane;
          for (int j = 0; j < rows; ++j)
            correlate_row(image, patterns_[p], x0, y0 + j, columns, rules, plane + j * kPadded);
          if (p % 16 == 15 && limit.is_over()) return;
        }
        const auto is_highest = [&](int p, int at, float value, bool earlier) {
          if (!is_wanted[p]) return true;
          const float* plane = scores.data() + static_cast<std::ptrdiff_t>(p) * kPlane + at;
          for (int j = -1; j <= 1; ++j)
            for (int i = -1; i <= 1; ++i) {
              const float other = plane[j * kPadded + i];
              if (other > value || (other == value && earlier)) return false;
            }
          return true;
        };
        const auto is_maximum = [&](int p, int at, float value) {
          const float* plane = scores.data() + static_cast<std::ptrdiff_t>(p) * kPlane + at;
          for (int j = -1; j <= 1; ++j)
            for (int i = -1; i <= 1; ++i)
              if (plane[j * kPadded + i] > value) return false;
          if (!options_.rotation_range && !options_.scale_range) return true;
          const int turn = p % turns, size = p / turns;
          if (options_.rotation_range && turns > 2) {
            const bool has_before = turn > 0 || full_circle_, has_after = turn + 1 < turns || full_circle_;
            const int before = size * turns + (turn + turns - 1) % turns,
                      after = size * turns + (turn + 1) % turns;
            if (has_before && !is_highest(before, at, value, true)) return false;
            if (has_after && !is_highest(after, at, value, false)) return false;
          }
          if (options_.scale_range && size > 0 && !is_highest(p - turns, at, value, true)) return false;
          return !options_.scale_range || size + 1 == sizes || is_highest(p + turns, at, value, false);
        };
        for (const int p : wanted) {
          const float* plane = scores.data() + static_cast<std::ptrdiff_t>(p) * kPlane;
          for (int j = 1; j + 1 < rows; ++j)
            for (int i = 1; i + 1 < columns; ++i) {
              const float value = plane[j * kPadded + i];
              if (!(value >= threshold) || !is_maximum(p, j * kPadded + i, value)) continue;
              const pose::Warp warp =
                  pose::similarity(x0 + i, y0 + j, angles_[p % turns], scales_[p / turns]);
              found[worker].push_back({.warp = pose::from_level(warp, level),
                                       .score = value,
                                       .angle = p % turns,
                                       .scale = p / turns});
            }
        }
      });
  std::vector<Candidate> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.warp.center_y != b.warp.center_y) return a.warp.center_y < b.warp.center_y;
    if (a.warp.center_x != b.warp.center_x) return a.warp.center_x < b.warp.center_x;
    return a.angle < b.angle;
  });
  const std::size_t most =
      effort.is_fast ? kFewCandidates : std::max(kMostCandidates, kCandidatesPerMatch * options_.max_matches);
  if (all.size() > most) all.resize(most);
  pool_.parallel_for(std::ssize(all), 1, [&](std::int64_t k, std::int64_t, int) {
    const pose::Warp place = pose::at_level(all[k].warp, level);
    const CoarseLine line = line_at(image, patterns_[all[k].scale * turns + all[k].angle],
                                    static_cast<int>(std::lround(place.center_x)),
                                    static_cast<int>(std::lround(place.center_y)), rules);
    all[k].gain = line.gain, all[k].offset = line.offset;
  });
  // The line of a part hides what does not fit at the first pose, also where only the pose is wrong: such
  // candidates are refined with all pixels as well.
  for (std::size_t k = 0, n = all.size(); k < n; ++k) {
    if (all[k].gain == 0) continue;
    Candidate copy = all[k];
    copy.gain = copy.offset = 0;
    copy.of_all = true;
    all.push_back(copy);
  }
  return all;
}

namespace {

/// True if two poses differ by about one unit at most. rim: of the template, px.
bool is_same_pose(const pose::Warp& a, const pose::Warp& b, double rim, double unit) {
  const double moved = std::hypot(a.center_x - b.center_x, a.center_y - b.center_y);
  const double turned = std::hypot(a.xx - b.xx, a.yx - b.yx) * rim;
  return moved < 1.5 * unit && turned < 2 * unit;
}

}  // namespace

/// Candidates that have come to the same pose as a better one are dropped. Those of all pixels and those of a
/// part may have different optima near each other, which only the last level before full resolution rates.
void PoseSearch::drop_duplicates(std::vector<Candidate>& candidates, int level) const {
  const double unit = 1 << level, rim = template_.level(0).rim;
  std::vector<Candidate> kept;
  for (const Candidate& c : candidates) {
    const bool is_known = std::ranges::any_of(kept, [&](const Candidate& k) {
      return (level <= 1 || c.of_all == k.of_all) && is_same_pose(c.warp, k.warp, rim, unit);
    });
    if (!is_known) kept.push_back(c);
  }
  candidates = std::move(kept);
}

RefinementPlan PoseSearch::plan_at(int level, const SearchLimit& limit) const {
  return {.freedom = freedom_,
          .any_polarity = options_.ignore_polarity,
          .robust_from = level == template_.top() ? 4 : 1,
          .most_steps = 10,
          .tolerance = 0.05,
          .rim = template_.level(level).rim,
          .stop = limit.stop()};
}

void PoseSearch::refine_level(const ImagePyramid& image, int level, std::vector<Candidate>& candidates,
                              const Effort& effort) {
  const SearchLimit& limit = effort.limit;
  const TemplateLevel& source = template_.level(level);
  const bool is_top = level == template_.top();
  const RefinementPlan plan = plan_at(level, limit);
  const SampleImage from = sample_image(image.level(level), image.mask(level));
  pool_.parallel_for(std::ssize(candidates), 1, [&](std::int64_t k, std::int64_t, int worker) {
    Candidate& c = candidates[k];
    c.score = -1;
    if (limit.is_over()) return;
    RefinementPlan mine = plan;
    mine.gain = c.gain, mine.offset = c.offset;
    const PoseFit fit = refiners_[worker].refine(from, source.pixels, pose::at_level(c.warp, level), mine);
    if (!fit.valid) return;
    c.warp = pose::from_level(fit.warp, level);
    // Without hidden pixels the correlation is high, so that less is background.
    if (c.of_all && fit.quality < kLeastOfAll) return;
    c.score = fit.quality;
    c.gain = fit.gain, c.offset = fit.offset;
    PoseFit full = fit;
    full.warp = c.warp;
    // At the last level before full resolution, which is the dearest, it is known what the structure will
    // cost at least.
    if (level == 1)
      c.score *= std::min(1.0, structure({image, effort, refiners_[worker]}, full) / kStructure);
  });
  std::ranges::stable_sort(candidates,
                           [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const double least = threshold_at(level);
  const auto end = std::ranges::find_if(candidates, [&](const Candidate& c) { return !(c.score >= least); });
  candidates.erase(end, candidates.end());
  drop_duplicates(candidates, level);
  const std::size_t most = std::max(is_top ? 200 : 80, 3 * options_.max_matches);
  if (candidates.size() > most) candidates.resize(most);
}

bool PoseSearch::is_in_range(const pose::Warp& warp) const {
  const double slack = kMinutePixels / template_.level(0).rim;
  if (options_.rotation_range && !full_circle_) {
    const double middle = (options_.rotation_range->min + options_.rotation_range->max) / 2 * kDegree;
    const double half = (options_.rotation_range->max - options_.rotation_range->min) / 2 * kDegree;
    if (std::abs(std::remainder(pose::rotation_of(warp) - middle, 2 * std::numbers::pi)) > half + slack)
      return false;
  }
  const double scale = pose::scale_of(warp);
  return !options_.scale_range || (scale >= options_.scale_range->min * (1 - slack) &&
                                   scale <= options_.scale_range->max * (1 + slack));
}

namespace {

/// The best fit of steps that do not converge, with the weights and residuals of its pose. Not valid if it is
/// not good: its standard deviations would not tell how far off it may be.
PoseFit best_of_steps(const SampleImage& image, const PixelList& pixels, const pose::Warp& start,
                      RefinementPlan plan, PoseRefiner& refiner) {
  plan.keeps_best = true;
  constexpr double kGood = 0.9;
  const PoseFit best = refiner.refine(image, pixels, start, plan);
  if (!best.valid || best.quality < kGood) return {};
  plan.gain = best.gain, plan.offset = best.offset;
  plan.most_steps = 0;
  PoseFit fit = refiner.refine(image, pixels, best.warp, plan);
  fit.warp = best.warp;
  return fit;
}

}  // namespace

namespace {

/// A part of the image around an instance at full resolution.
class FullWindow {
 public:
  /// is_fast: grey values between pixels without a spline. The part may be empty.
  FullWindow(const ImagePyramid& image, const Rectangle& part, bool is_fast, core::ThreadPool& pool)
      : part_(part) {
    if (is_empty()) return;
    const int width = part.right - part.left, height = part.bottom - part.top;
    const ImageView view = part_of(image.image(), part.left, part.top, width, height);
    if (is_fast) {
      pixels_ = float_image(view, pool);
      samples_ = sample_image(pixels_, nullptr);
      samples_.sampling = Sampling::lagrange;
    } else {
      samples_ = spline_.emplace(view, pool).samples();
    }
    const FloatImage* all = image.mask(0);
    if (!all) return;
    mask_ = FloatImage(width, height);
    for (int y = 0; y < height; ++y) std::copy_n(all->row(part.top + y) + part.left, width, mask_.row(y));
    samples_.mask = mask_.values.data();
  }
  FullWindow(const FullWindow&) = delete;
  FullWindow& operator=(const FullWindow&) = delete;

  bool is_empty() const { return part_.right - part_.left < 4 || part_.bottom - part_.top < 4; }
  const SampleImage& samples() const { return samples_; }
  pose::Warp to_window(pose::Warp warp) const {
    warp.center_x -= part_.left, warp.center_y -= part_.top;
    return warp;
  }
  pose::Warp to_image(pose::Warp warp) const {
    warp.center_x += part_.left, warp.center_y += part_.top;
    return warp;
  }

 private:
  Rectangle part_;
  std::optional<QuinticSpline> spline_;
  FloatImage pixels_, mask_;
  SampleImage samples_;
};

}  // namespace

/// The pixels of the image in which a template at a pose lies, and those of which the spline is made.
Rectangle PoseSearch::reach_of(const pose::Warp& warp, const ImageView& image) const {
  const double half_width = template_.width() / 2.0, half_height = template_.height() / 2.0;
  const double reach_x = std::abs(warp.xx) * half_width + std::abs(warp.xy) * half_height + kFullContext;
  const double reach_y = std::abs(warp.yx) * half_width + std::abs(warp.yy) * half_height + kFullContext;
  const auto clamp = [](double value, int size) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(size)));
  };
  return {clamp(warp.center_x - reach_x, image.width), clamp(warp.center_y - reach_y, image.height),
          clamp(warp.center_x + reach_x + 1, image.width), clamp(warp.center_y + reach_y + 1, image.height)};
}

/// Fits with more and more pixels, the last time with all of them unless the search is fast.
PoseFit PoseSearch::refine_window(const SampleImage& from, const pose::Warp& start, const Trial& trial,
                                  RefinementPlan& plan) const {
  const TemplateLevel& source = template_.level(0);
  const bool is_large = template_.many().count > 0, ends_with_many = is_large && trial.effort.is_fast;
  PoseFit fit;
  fit.warp = start;
  const auto step = [&](const PixelList& pixels) {
    fit = trial.refiner.refine(from, pixels, fit.warp, plan);
    plan.gain = fit.gain, plan.offset = fit.offset;
    return fit.valid;
  };
  if (template_.full().count > 4 * source.pixels.count && !step(source.pixels)) return fit;
  plan.is_near = true;
  if (options_.affine) plan.freedom = Freedom::affine;
  // Sigmas are made of the values and weights of the last step, so that it must be the result.
  plan.keeps_best = !ends_with_many;
  if (is_large && !step(template_.many())) return fit;
  if (ends_with_many) return fit;
  plan.tolerance = is_large ? 0.003 : 0.001;
  plan.most_steps = 20;
  plan.keeps_best = false;
  const PoseFit before = fit;
  fit = trial.refiner.refine(from, template_.full(), before.warp, plan);
  return fit.valid ? fit : best_of_steps(from, template_.full(), before.warp, plan, trial.refiner);
}

std::optional<PoseSearch::Refined> PoseSearch::refine_full(const Trial& trial,
                                                           const Candidate& candidate) const {
  const bool is_fast = trial.effort.is_fast;
  const FullWindow window(trial.image, reach_of(candidate.warp, trial.image.image()), is_fast, pool_);
  if (window.is_empty()) return std::nullopt;
  RefinementPlan plan{.freedom = freedom_,
                      .any_polarity = options_.ignore_polarity,
                      .most_steps = 10,
                      .tolerance = 0.02,
                      .rim = template_.level(0).rim,
                      .most_motion = 4,
                      .gain = candidate.gain,
                      .offset = candidate.offset,
                      .stop = trial.effort.limit.stop()};
  PoseFit fit = refine_window(window.samples(), window.to_window(candidate.warp), trial, plan);
  if (!fit.valid) return std::nullopt;
  const PixelList& last = is_fast && template_.many().count > 0 ? template_.many() : template_.full();
  trial.refiner.with_sigmas(window.samples(), last, plan, fit);
  if (!fit.valid) return std::nullopt;
  return Refined{fit, window.to_image(fit.warp), plan.freedom};
}

namespace {

/// The score of a match: correlation of the pixels that fit, reduced by the share of pixels that do not fit
/// or lie outside the image. The less is visible, the easier something else resembles it by chance.
double final_score(const PoseFit& fit) {
  return std::abs(fit.fit_score) * std::sqrt(std::min(1.0, fit.visible));
}

}  // namespace

/// Correlation of the gradients at half resolution, where noise is lower.
double PoseSearch::structure(const Trial& trial, const PoseFit& fit) const {
  const int level = std::min(1, template_.top());
  PoseFit there = fit;
  there.warp = pose::at_level(fit.warp, level);
  const SampleImage from = sample_image(trial.image.level(level), trial.image.mask(level));
  const double correlation = trial.refiner.gradient_correlation(from, template_.level(level).pixels, there);
  return options_.ignore_polarity ? std::abs(correlation) : std::max(0.0, correlation);
}

/// The place, angle and scale of a match. `pose`: template index and size.
Match PoseSearch::match_at(const pose::Warp& warp, const Candidate& candidate, const Match& pose) const {
  Match match = pose;
  match.center_x = warp.center_x, match.center_y = warp.center_y;
  const double xi = -(template_.width() - 1) / 2.0, eta = -(template_.height() - 1) / 2.0;
  match.x = warp.center_x + warp.xx * xi + warp.xy * eta;
  match.y = warp.center_y + warp.yx * xi + warp.yy * eta;
  match.rotation_deg = options_.rotation_range || options_.affine
                           ? normalized(pose::rotation_of(warp) / kDegree)
                           : options_.rotations[candidate.angle];
  match.scale =
      options_.scale_range || options_.affine ? pose::scale_of(warp) : options_.scales[candidate.scale];
  return match;
}

/// A fit at one level; its pose is in pixels of full resolution.
PoseFit PoseSearch::fit_at(const Trial& trial, int level, const pose::Warp& start,
                           const RefinementPlan& plan) const {
  PoseFit fit = trial.refiner.refine(sample_image(trial.image.level(level), trial.image.mask(level)),
                                     template_.level(level).pixels, pose::at_level(start, level), plan);
  fit.warp = pose::from_level(fit.warp, level);
  return fit;
}

/// The pose to which a start leads before full resolution. None if it is the known pose, or clearly worse.
std::optional<pose::Warp> PoseSearch::rival(const Trial& trial, const pose::Warp& start,
                                            const pose::Warp& known) const {
  const int level = std::min(1, template_.top());
  RefinementPlan plan = plan_at(level, trial.effort.limit);
  plan.robust_from = 1;
  const PoseFit fit = fit_at(trial, level, start, plan);
  if (!fit.valid || is_same_pose(fit.warp, known, template_.level(0).rim, kSameUnit)) return std::nullopt;
  plan.robust_from = plan.most_steps = 0;
  const PoseFit here = fit_at(trial, level, known, plan);
  if (here.valid && fit.quality < here.quality - kNearlyAsGood) return std::nullopt;
  return fit.warp;
}

/// The pose to which all pixels lead from a known one. Where that is a local optimum, its weights hide the
/// pixels that would say so. None if the pose remains the same or becomes clearly worse.
std::optional<pose::Warp> PoseSearch::pose_of_all(const Trial& trial, const pose::Warp& known) const {
  pose::Warp warp = known;
  for (int level = template_.top(); level >= std::min(1, template_.top()); --level) {
    RefinementPlan plan = plan_at(level, trial.effort.limit);
    plan.robust_from = plan.most_steps + 1;
    const PoseFit fit = fit_at(trial, level, warp, plan);
    if (!fit.valid) return std::nullopt;
    warp = fit.warp;
  }
  return rival(trial, warp, known);
}

/// Refines a start and keeps it if it is better. is_turned: far from the best pose so far.
void PoseSearch::try_pose(const Trial& trial, const Candidate& start, bool is_turned, Best& best) const {
  const auto other = refine_full(trial, start);
  if (!other) return;
  PoseFit in_image = other->fit;
  in_image.warp = other->warp;
  const double demanded = demanded_structure(template_.level(std::min(1, template_.top())).pixels.count);
  const double reached = final_score(other->fit) * std::min(1.0, structure(trial, in_image) / demanded);
  // A fit that is bad everywhere counts more pixels as visible than a good one with some misfit: poses that
  // are far apart are compared by all pixels, unless something hides many.
  const bool by_all =
      is_turned && best.pose && std::min(best.pose->fit.visible, other->fit.visible) > kMostlyVisible;
  const bool is_better =
      by_all ? std::abs(other->fit.score) > std::abs(best.pose->fit.score) : reached > best.score;
  if (is_better) best.pose = other, best.score = reached;
}

/// Tries the turns after which the template nearly looks the same.
void PoseSearch::try_symmetries(const Trial& trial, const pose::Warp& start, Best& best) const {
  for (const double turn : template_.symmetries()) {
    const double c = std::cos(turn * kDegree), s = std::sin(turn * kDegree);
    const pose::Warp w = best.pose ? best.pose->warp : start;
    pose::Warp turned = w;
    turned.xx = w.xx * c + w.xy * s, turned.xy = w.xy * c - w.xx * s;
    turned.yx = w.yx * c + w.yy * s, turned.yy = w.yy * c - w.yx * s;
    if (!is_in_range(turned)) continue;
    if (const auto other = rival(trial, turned, w)) try_pose(trial, {.warp = *other}, true, best);
  }
}

/// Qualities of poses before full resolution after a step of their centre, which the pixels do determine; by
/// the gain and offset of a fit. -1 outside the ranges.
std::vector<double> PoseSearch::qualities(const Trial& trial, const PoseFit& fit,
                                          std::vector<pose::Warp>& poses) const {
  const int level = std::min(1, template_.top());
  RefinementPlan plan = plan_at(level, trial.effort.limit);
  plan.freedom = Freedom::shift;
  plan.most_steps = 2;
  plan.gain = fit.gain, plan.offset = fit.offset;
  std::vector<double> qualities;
  for (pose::Warp& warp : poses) {
    const PoseFit here = is_in_range(warp) ? fit_at(trial, level, warp, plan) : PoseFit{};
    qualities.push_back(here.valid ? here.quality : -1);
    if (here.valid) warp = here.warp;
  }
  return qualities;
}

/// Where pixels do not determine a motion, what they hide or show beside the template may: tries the best
/// poses along the motion. Standard deviations cover the poses that are as good as the best one.
void PoseSearch::settle_loose_motion(const Trial& trial, Best& best) const {
  const Refined start = *best.pose;
  const int level = std::min(1, template_.top());
  const double step = 1 << level;
  std::vector<pose::Warp> poses =
      poses_along(start.warp, start.fit.loose, start.freedom, template_.level(0).rim, step);
  const std::vector<double> quality = qualities(trial, start.fit, poses);
  std::vector<std::size_t> order(poses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return quality[a] > quality[b]; });
  std::vector<pose::Warp> tried = {start.warp};
  constexpr std::size_t kTried = 4;
  for (const std::size_t k : order) {
    if (tried.size() == kTried || quality[k] <= 0) break;
    const bool is_known = std::ranges::any_of(tried, [&](const pose::Warp& known) {
      return is_same_pose(poses[k], known, template_.level(0).rim, 1.5 * step);
    });
    if (is_known) continue;
    tried.push_back(poses[k]);
    try_pose(trial, {.warp = poses[k], .gain = start.fit.gain, .offset = start.fit.offset}, false, best);
  }
  best.pose->fit = covering(best.pose->fit, best.pose->warp, poses, quality);
}

/// A fit with standard deviations that cover the poses which are as good as the best one.
PoseFit PoseSearch::covering(PoseFit fit, const pose::Warp& warp, const std::vector<pose::Warp>& poses,
                             const std::vector<double>& quality) const {
  // Squared qualities are shares of the explained variance; those of poses that differ by noise alone are
  // within some of its shares.
  constexpr double kSame = 20;
  const double highest = std::ranges::max(quality);
  const int pixels = template_.level(std::min(1, template_.top())).pixels.count;
  const double least = highest * highest - kSame * (1 - highest * highest) / std::max(1, pixels);
  double x = 0, y = 0, turn = 0, count = 0;
  for (std::size_t k = 0; k < poses.size(); ++k) {
    if (quality[k] <= 0 || quality[k] * quality[k] < least) continue;
    x += std::pow(poses[k].center_x - warp.center_x, 2), y += std::pow(poses[k].center_y - warp.center_y, 2);
    turn += std::pow(
        std::remainder(pose::rotation_of(poses[k]) - pose::rotation_of(warp), 2 * std::numbers::pi), 2);
    ++count;
  }
  if (count == 0) return fit;
  fit.sigma_x = std::hypot(fit.sigma_x, std::sqrt(x / count));
  fit.sigma_y = std::hypot(fit.sigma_y, std::sqrt(y / count));
  if (freedom_ != Freedom::scale) fit.sigma_radians = std::hypot(fit.sigma_radians, std::sqrt(turn / count));
  return fit;
}

std::optional<Match> PoseSearch::finish(const Trial& trial, const Candidate& candidate,
                                        const Match& pose) const {
  Best best;
  try_pose(trial, candidate, false, best);
  if (best.pose && best.score >= options_.threshold)
    if (const auto other = pose_of_all(trial, best.pose->warp))
      try_pose(trial, {.warp = *other}, false, best);
  try_symmetries(trial, candidate.warp, best);
  if (best.pose && !best.pose->fit.loose.empty()) settle_loose_motion(trial, best);
  if (!best.pose || !is_in_range(best.pose->warp)) return std::nullopt;
  const PoseFit& fit = best.pose->fit;
  Match match = match_at(best.pose->warp, candidate, pose);
  match.score = best.score;
  match.refined = true;
  match.visible = fit.visible;
  match.sigma_x = fit.sigma_x, match.sigma_y = fit.sigma_y;
  match.sigma_rotation_deg = fit.sigma_radians / kDegree;
  match.sigma_scale = fit.sigma_log_scale * match.scale;
  return match;
}

MatchResult PoseSearch::find(ImagePyramid& image, const Match& pose, const SearchLimit& limit) {
  std::vector<int> all(angles_.size() * scales_.size());
  std::iota(all.begin(), all.end(), 0);
  return find(image, pose, all, {limit, options_.max_matches});
}

MatchResult PoseSearch::find_near(ImagePyramid& image, const Match& last, const SearchLimit& limit) {
  constexpr double kNear = 1.6;  // coarse poses to each side
  const double rim = std::max(1.0, template_.level(template_.top()).rim), near = kNear * kPoseStep / rim;
  std::vector<int> poses;
  for (std::size_t s = 0; s < scales_.size(); ++s)
    for (std::size_t a = 0; a < angles_.size(); ++a) {
      const double turn = std::remainder(angles_[a] - last.rotation_deg * kDegree, 2 * std::numbers::pi);
      const bool is_near = (!options_.rotation_range || std::abs(turn) <= near) &&
                           (!options_.scale_range || std::abs(std::log(scales_[s] / last.scale)) <= near);
      if (is_near) poses.push_back(static_cast<int>(s * angles_.size() + a));
    }
  return find(image, last, poses, {limit, 1, true});
}

/// Takes the next candidates, at most one per thread, that are not at the pose of an accepted match and do
/// not overlap one which they cannot surpass.
std::vector<PoseSearch::Candidate> PoseSearch::next_batch(const std::vector<Candidate>& candidates,
                                                          std::size_t& next, const Match& pose,
                                                          const std::vector<Match>& accepted) const {
  std::vector<Candidate> batch;
  for (; next < candidates.size() && static_cast<int>(batch.size()) < pool_.size(); ++next) {
    const Candidate& candidate = candidates[next];
    const bool is_known = std::ranges::any_of(accepted, [&](const Match& m) {
      const pose::Warp known = pose::similarity(m.center_x, m.center_y, m.rotation_deg * kDegree, m.scale);
      return is_same_pose(candidate.warp, known, template_.level(0).rim, 2);
    });
    if (is_known) continue;
    const auto may_win = std::ranges::find_if(
        accepted, [&](const Match& match) { return match.score < candidate.score + kRise; });
    const std::vector<Match> better(accepted.begin(), may_win);
    if (!is_suppressed(match_at(candidate.warp, candidate, pose), better, options_.max_overlap))
      batch.push_back(candidate);
  }
  return batch;
}

MatchResult PoseSearch::find(ImagePyramid& image, const Match& pose, const std::vector<int>& poses,
                             const Effort& effort) {
  const SearchLimit& limit = effort.limit;
  MatchResult result;
  image.require(template_.top(), pool_);
  if (template_.top() == 0) image.require_full(pool_);
  std::vector<Candidate> candidates = coarse(image, poses, effort);
  if (!candidates.empty()) result.best_score = candidates.front().score;
  for (int level = template_.top(); level >= 1 && !candidates.empty(); --level)
    refine_level(image, level, candidates, effort);
  std::vector<Match> found;
  double best = -1;
  for (std::size_t next = 0; next < candidates.size() && !limit.is_over();) {
    const std::vector<Candidate> batch = next_batch(candidates, next, pose, result.matches);
    std::vector<std::optional<Match>> matches(batch.size());
    pool_.parallel_for(std::ssize(batch), 1, [&](std::int64_t k, std::int64_t, int worker) {
      if (!limit.is_over()) matches[k] = finish({image, effort, refiners_[worker]}, batch[k], pose);
    });
    for (const auto& match : matches) {
      if (!match) continue;
      best = std::max(best, match->score);
      if (match->score >= options_.threshold - kScoreRounding) found.push_back(*match);
    }
    std::ranges::stable_sort(found, [](const Match& a, const Match& b) { return a.score > b.score; });
    result.matches = suppress_non_maxima(found, options_.max_overlap, effort.matches);
    if (static_cast<int>(result.matches.size()) == effort.matches && next < candidates.size() &&
        candidates[next].score < result.matches.back().score - kRise)
      break;
  }
  if (best > -1) result.best_score = best;
  result.timed_out = limit.is_over();
  return result;
}

}  // namespace dic::match

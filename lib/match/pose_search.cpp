#include "match/pose_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <tuple>

#include "match/box.hpp"
#include "match/loose_motion.hpp"
#include "match/quintic_spline.hpp"

namespace dic::match {
namespace {

using pose::Freedom;

constexpr double kDegree = std::numbers::pi / 180;
constexpr double kPoseStep = 1.3;  ///< distance of neighbouring coarse poses at the template's rim, px
/// Amount by which an exact copy's score may be too low.
constexpr double kScoreRounding = 1e-6;
constexpr int kMostCandidates = 400;       ///< of the coarsest level, but
constexpr double kRise = 0.05;             ///< amount by which full resolution may raise a score
constexpr int kFewCandidates = 16;         ///< where one match is searched near an earlier pose, of which
constexpr std::size_t kFewRefined = 6;     ///< so many stay after the coarsest level
constexpr int kCandidatesPerMatch = 6;     ///< at least so many per match that is wanted
constexpr std::size_t kMostTogether = 16;  ///< candidates that are measured at the same time
constexpr int kFullContext = 12;           ///< px around an instance of which the spline is made
constexpr double kNearlyAsGood =
    0.03;                             ///< loss of quality up to which another pose is looked at more closely
constexpr double kLeastOfAll = 0.75;  ///< quality of a candidate that is refined with all pixels
constexpr double kMostlyVisible = 0.8;  ///< share of a template from which it is seen nearly as a whole
constexpr double kSameUnit = 0.25;      ///< px, in which a pose is the same after all pixels counted
constexpr double kDetermined = 0.01;    ///< largest standard deviation of a pose, as a share of its rim, but
constexpr double kWholeDetermined = 0.1;  ///< where nothing is hidden
constexpr double kHopeless = 0.25;  ///< share of the threshold below which half of the resolution is trusted
/// Tolerance of the ends of ranges: px at the rim, and standard deviations.
constexpr double kMinutePixels = 0.5, kMinuteSigmas = 3;

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

}  // namespace

CoarsePoses PoseSearch::coarse_poses() const {
  const TemplateLevel& top = template_.level(template_.top());
  const double largest =
      options_.scale_range ? options_.scale_range->max : *std::ranges::max_element(options_.scales);
  const double rim = std::max(1.0, top.rim),
               step = kPoseStep / (rim * std::sqrt(largest * least_scale(options_)));
  CoarsePoses poses{.angles = {},
                    .scales = options_.scales,
                    .by_angle = options_.rotation_range.has_value(),
                    .by_scale = options_.scale_range.has_value()};
  if (options_.rotation_range) {
    const double range =
        std::min(360.0, options_.rotation_range->max - options_.rotation_range->min) * kDegree;
    poses.full_circle = range > 2 * std::numbers::pi - 1e-9;
    const int count = pose::pose_count(range, step);
    for (int k = 0; k < count; ++k)
      poses.angles.push_back(options_.rotation_range->min * kDegree +
                             range * (poses.full_circle ? k : k + 0.5) / count);
  } else {
    for (const double degrees : options_.rotations) poses.angles.push_back(degrees * kDegree);
  }
  if (!options_.scale_range) return poses;
  const double low = std::log(options_.scale_range->min), range = std::log(options_.scale_range->max) - low;
  const int count = pose::pose_count(range, kPoseStep / rim);
  poses.scales.clear();
  for (int k = 0; k < count; ++k) poses.scales.push_back(std::exp(low + range * (k + 0.5) / count));
  return poses;
}

PoseSearch::PoseSearch(const Template& source, const MatchOptions& options, core::ThreadPool& pool)
    : options_(options),
      pool_(pool),
      template_(source, least_scale(options), pool),
      freedom_(freedom_of(options)),
      poses_(coarse_poses()),
      patterns_(poses_.count()),
      refiners_(pool.size(), PoseRefiner(pool)),
      pixels_(pool.size()) {}

double PoseSearch::coarse_work(ImageView image) const {
  const double places = static_cast<double>(image.width) * image.height / (1LL << 2 * top_of_image());
  const FloatImage& pattern = template_.level(template_.top()).values;
  return places * poses_.count() * pattern.width * pattern.height;
}

double PoseSearch::top_threshold() const { return std::max(0.25, 0.6 * options_.threshold); }

double PoseSearch::threshold_at(int level) const {
  // The coarser the level, the more of the contrast is lost and the farther off is the pose.
  const double share = level == template_.top() ? 0.55 : std::max(0.75, 0.95 - 0.05 * level);
  return options_.threshold * share;
}

/// A pose in pixels of the image with which a level is compared, and back.
pose::Warp PoseSearch::at_level(const pose::Warp& warp, int level) const {
  return pose::at_level(warp, template_.image_level(level));
}
pose::Warp PoseSearch::from_level(const pose::Warp& warp, int level) const {
  return pose::from_level(warp, template_.image_level(level));
}

/// Margin of the coarsest level of images, px.
int PoseSearch::coarse_margin() const {
  return static_cast<int>(std::ceil(std::ranges::max(poses_.scales) * template_.level(template_.top()).rim)) +
         2;
}

/// The job of the coarsest level; its patterns are made if they are missing.
CoarseSearch PoseSearch::coarse_search(ImagePyramid& pyramid, std::span<const int> wanted,
                                       const Effort& effort) {
  const CoarseImage& image = pyramid.coarse(top_of_image(), coarse_margin(), pool_);
  if (pattern_stride_ != image.stride) patterns_.assign(poses_.count(), {});
  pattern_stride_ = image.stride;
  std::vector<int> missing;
  std::ranges::copy_if(wanted, std::back_inserter(missing),
                       [&](int pose) { return patterns_[pose].elements.empty(); });
  pool_.parallel_for(std::ssize(missing), 1, [&](std::int64_t k, std::int64_t, int) {
    const int pose = missing[k];
    if (!effort.limit.is_over())
      patterns_[pose] = template_.coarse_pattern(poses_.angle(pose), poses_.scale(pose), image.stride);
  });
  return {.source = &template_,
          .poses = &poses_,
          .wanted = wanted,
          .patterns = patterns_,
          .image = &image,
          .rules = {.least_variance = static_cast<float>(1e-3 * image.variance + 1e-12),
                    .any_polarity = options_.ignore_polarity},
          .threshold = static_cast<float>(top_threshold()),
          .most = effort.is_fast
                      ? kFewCandidates
                      : std::size_t(std::max(kMostCandidates, kCandidatesPerMatch * options_.max_matches))};
}

/// The best maxima as candidates.
std::vector<PoseSearch::Candidate> PoseSearch::candidates_of(CoarseSearch& search) const {
  std::vector<CoarseMaximum>& found = search.found;
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), search.most));
  std::ranges::partial_sort(found, end, [](const CoarseMaximum& a, const CoarseMaximum& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::tie(a.y, a.x, a.pose) < std::tie(b.y, b.x, b.pose);
  });
  found.erase(end, found.end());
  std::vector<Candidate> all(found.size());
  constexpr std::int64_t kLines = 32;  // that a thread takes
  pool_.parallel_for(std::ssize(found), kLines, [&](std::int64_t begin, std::int64_t last, int) {
    for (std::int64_t k = begin; k < last; ++k) {
      const CoarseMaximum& m = found[k];
      const CoarseLine line = line_at(*search.image, patterns_[m.pose], m.x, m.y, search.rules);
      const pose::Warp warp = pose::similarity(m.x, m.y, poses_.angle(m.pose), poses_.scale(m.pose));
      all[k] = {.warp = from_level(warp, template_.top()),
                .score = m.score,
                .gain = line.gain,
                .offset = line.offset,
                .angle = m.pose % poses_.turns(),
                .scale = m.pose / poses_.turns()};
    }
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
  const double x = a.center_x - b.center_x, y = a.center_y - b.center_y;
  if (x * x + y * y >= 1.5 * 1.5 * unit * unit) return false;
  const double xx = (a.xx - b.xx) * rim, yx = (a.yx - b.yx) * rim;
  return xx * xx + yx * yx < 4 * unit * unit;
}

}  // namespace

/// Keeps the best candidates, at most `most`, without those that have come to the same pose as a better one.
/// Those of all pixels and those of a part may have different optima near each other, which only the last
/// level before full resolution rates.
void PoseSearch::keep_best(std::vector<Candidate>& candidates, int level, std::size_t most) const {
  const double unit = 1 << template_.image_level(level), rim = template_.level(0).rim;
  std::vector<Candidate> kept;
  for (const Candidate& c : candidates) {
    if (kept.size() == most) break;
    const bool is_known = std::ranges::any_of(kept, [&](const Candidate& k) {
      return (level <= 1 || c.of_all == k.of_all) && is_same_pose(c.warp, k.warp, rim, unit);
    });
    if (!is_known) kept.push_back(c);
  }
  candidates = std::move(kept);
}

RefinementPlan PoseSearch::plan_at(int level, const SearchLimit& limit) const {
  return {{.freedom = freedom_,
           .any_polarity = options_.ignore_polarity,
           .robust_from = level == template_.top() ? 4 : 1,
           .most_steps = 10,
           .tolerance = 0.05,
           .rim = template_.level(level).rim},
          limit.stop()};
}

/// Takes the fits of a level over; keeps the best candidates.
void PoseSearch::take_fits(int level, std::span<const LevelFit> fits, bool is_fast,
                           std::vector<Candidate>& candidates) const {
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    Candidate& c = candidates[k];
    const pose::Fit& fit = fits[k].fit;
    c.score = -1;
    if (!fit.valid) continue;
    c.warp = from_level(fit.warp, level);
    // Without hidden pixels the correlation is high, so that less is background.
    if (c.of_all && fit.quality < kLeastOfAll) continue;
    c.score = fit.quality;
    c.gain = fit.gain, c.offset = fit.offset;
    // At the last level before full resolution, which is the dearest, it is known what the structure will
    // cost at least.
    if (level == 1) c.score *= std::min(1.0, agreement(fits[k].structure) / kStructure);
  }
  std::ranges::stable_sort(candidates,
                           [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const double least = threshold_at(level);
  const auto end = std::ranges::find_if(candidates, [&](const Candidate& c) { return !(c.score >= least); });
  candidates.erase(end, candidates.end());
  const int most = std::max(level == template_.top() ? 200 : 80, 3 * options_.max_matches);
  keep_best(candidates, level, is_fast ? kFewRefined : most);
}

/// Refines the candidates of the runs whose level is compared with that level of the image.
void PoseSearch::refine_level(std::span<Run> runs, int level, int image_level, const Setting& setting,
                              bool is_fast) {
  std::vector<Run*> those;
  for (Run& run : runs)
    if (const PoseTemplate& source = run.search->template_;
        level <= source.top() && image_level == source.image_level(level))
      those.push_back(&run);
  std::vector<std::size_t> firsts;  // by run
  std::vector<RefinementPlan> plans(those.size());
  std::size_t count = 0;
  for (std::size_t k = 0; k < those.size(); ++k) {
    firsts.push_back(count);
    plans[k] = those[k]->search->plan_at(level, setting.limit);
    count += those[k]->candidates.size();
  }
  if (count == 0) return;
  std::vector<LevelStart> starts(count);
  setting.pool.parallel_for(std::ssize(those), 1, [&](std::int64_t k, std::int64_t, int) {
    const Run& run = *those[k];
    for (std::size_t i = 0; i < run.candidates.size(); ++i) {
      const Candidate& c = run.candidates[i];
      starts[firsts[k] + i] = {&run.search->template_, pose::at_level(c.warp, image_level), &plans[k], c.gain,
                               c.offset};
    }
  });
  std::vector<LevelFit> fits(count);
  setting.backend.fit(level, image_level, starts, fits, setting.limit);
  setting.pool.parallel_for(std::ssize(those), 1, [&](std::int64_t k, std::int64_t, int) {
    Run& run = *those[k];
    run.search->take_fits(level, std::span(fits).subspan(firsts[k], run.candidates.size()), is_fast,
                          run.candidates);
  });
}

bool PoseSearch::is_in_range(const pose::Warp& warp, double sigma_radians, double sigma_log_scale) const {
  const double minute = kMinutePixels / template_.level(0).rim;
  if (options_.rotation_range && !poses_.full_circle) {
    const double middle = (options_.rotation_range->min + options_.rotation_range->max) / 2 * kDegree;
    const double half = (options_.rotation_range->max - options_.rotation_range->min) / 2 * kDegree;
    const double turn = std::remainder(pose::rotation_of(warp) - middle, 2 * std::numbers::pi);
    if (std::abs(turn) > half + minute + kMinuteSigmas * sigma_radians) return false;
  }
  if (!options_.scale_range) return true;
  const double scale = pose::scale_of(warp), slack = 1 + minute + kMinuteSigmas * sigma_log_scale;
  return scale >= options_.scale_range->min / slack && scale <= options_.scale_range->max * slack;
}

namespace {

constexpr double kGood = 0.9;  ///< least quality of steps that do not converge

/// The best fit of steps that do not converge, with the weights and residuals of its pose. Not valid if it is
/// not good: its standard deviations would not tell how far off it may be.
PoseFit best_of_steps(FullFits& fits, const PixelList& pixels, const pose::Warp& start, RefinementPlan plan) {
  plan.keeps_best = true;
  const PoseFit best = fits.refine(pixels, start, plan);
  if (!best.valid || best.quality < kGood) return {};
  plan.gain = best.gain, plan.offset = best.offset;
  plan.most_steps = 0;
  PoseFit fit = fits.refine(pixels, best.warp, plan);
  fit.warp = best.warp;
  return fit;
}

}  // namespace

namespace {

/// True if too little of an image is left.
bool is_empty(const Rectangle& part) { return part.right - part.left < 4 || part.bottom - part.top < 4; }

/// Fits on the host, in a part of the image around an instance.
class HostFits final : public FullFits {
 public:
  /// is_fast: grey values between pixels without a spline, whose memory is `pixels`. part: not empty.
  HostFits(const ImagePyramid& image, const Rectangle& part, bool is_fast, PoseRefiner& refiner,
           FloatImage& pixels, core::ThreadPool& pool)
      : part_(part), refiner_(refiner) {
    const int width = part.right - part.left, height = part.bottom - part.top;
    const ImageView view = part_of(image.image(), part.left, part.top, width, height);
    if (is_fast) {
      make_float_image(view, pool, pixels);
      samples_ = sample_image(pixels, nullptr);
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
  HostFits(const HostFits&) = delete;
  HostFits& operator=(const HostFits&) = delete;

  PoseFit refine(const PixelList& pixels, const pose::Warp& start, const RefinementPlan& plan) override {
    PoseFit fit = refiner_.refine(samples_, pixels, moved(start, -1), plan);
    fit.warp = moved(fit.warp, 1);
    return fit;
  }
  void with_sigmas(const PixelList& pixels, const RefinementPlan& plan, PoseFit& fit) override {
    const pose::Warp in_image = fit.warp;
    fit.warp = moved(in_image, -1);
    refiner_.with_sigmas(samples_, pixels, plan, fit);
    fit.warp = in_image;
  }

 private:
  /// A pose in the part (-1) or in the image (1).
  pose::Warp moved(pose::Warp warp, int sign) const {
    warp.center_x += sign * part_.left, warp.center_y += sign * part_.top;
    return warp;
  }

  Rectangle part_;
  std::optional<QuinticSpline> spline_;
  FloatImage mask_;
  SampleImage samples_;
  PoseRefiner& refiner_;
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

namespace {

/// The score of a match: correlation of the pixels that fit, reduced by the share of pixels, and of the
/// contrast inside the image, that does not fit, and by that outside the image. The less is visible, the
/// easier something else resembles it by chance.
double final_score(const PoseFit& fit, double contrast = 1) {
  return std::abs(fit.fit_score) * std::sqrt(std::min({1.0, fit.visible, fit.inside * contrast}));
}

}  // namespace

/// Fits with more and more pixels, the last time with all of them unless the search is fast. Gives up a pose
/// of which fewer pixels tell that its score will be below `wanted`.
PoseFit PoseSearch::refine_list(const Trial& trial, FullFits& fits, const pose::Warp& start, double wanted,
                                RefinementPlan& plan) const {
  const TemplateLevel& source = template_.level(0);
  const bool is_large = template_.many().count > 0, ends_with_many = is_large && trial.effort.is_fast;
  PoseFit fit;
  fit.warp = start;
  const auto step = [&](const PixelList& pixels) {
    fit = fits.refine(pixels, fit.warp, plan);
    plan.gain = fit.gain, plan.offset = fit.offset;
    return fit.valid;
  };
  if (has_many_pixels()) {
    if (step(source.pixels)) fit.valid = final_score(fit) >= wanted - 2 * kRise;
    if (!fit.valid) return fit;
  }
  plan.is_near = true;
  if (options_.affine) plan.freedom = Freedom::affine;
  // Sigmas are made of the values and weights of the last step, so that it must be the result.
  plan.keeps_best = !ends_with_many;
  if (is_large && !step(template_.many())) return fit;
  if (ends_with_many) return fit;
  if (is_large && !(score_of(trial, fit) >= wanted - kRise)) return {};
  plan.tolerance = is_large ? 0.003 : 0.001;
  plan.most_steps = 20;
  plan.keeps_best = false;
  const PoseFit before = fit;
  fit = fits.refine(template_.full(), before.warp, plan);
  const bool may_be_good = !before.valid || before.quality > kGood - kRise;
  if (fit.valid || !may_be_good) return fit;
  return best_of_steps(fits, template_.full(), before.warp, plan);
}

/// True if a turned pose and the best one are compared by all pixels. A fit that is bad everywhere counts
/// more pixels as visible than a good one with some misfit, so that this holds unless something hides many.
bool PoseSearch::is_by_all(const PoseFit& fit, bool is_turned, const Best& best) {
  return is_turned && best.pose && std::min(best.pose->fit.visible, fit.visible) > kMostlyVisible;
}

/// Measures a candidate with all pixels, unless some of them say that its score will be too low, or all of
/// them that it is not better than the best pose. is_turned: far from that one.
std::optional<PoseSearch::Refined> PoseSearch::refine_full(const Trial& trial, const Candidate& candidate,
                                                           bool is_turned, const Best& best) const {
  // Poses that are far apart are compared by another score.
  const double wanted = is_turned ? options_.threshold : std::max(options_.threshold, best.score);
  const bool is_fast = trial.effort.is_fast;
  const Rectangle part = reach_of(candidate.warp, trial.image.image());
  if (is_empty(part)) return std::nullopt;
  std::unique_ptr<FullFits> fits = is_fast ? nullptr : trial.backend.full_fits(template_);
  if (!fits)
    fits = std::make_unique<HostFits>(trial.image, part, is_fast, trial.refiner, trial.pixels, pool_);
  RefinementPlan plan{{.freedom = freedom_,
                       .any_polarity = options_.ignore_polarity,
                       .most_steps = 10,
                       .tolerance = 0.02,
                       .rim = template_.level(0).rim,
                       .most_motion = 4,
                       .gain = candidate.gain,
                       .offset = candidate.offset},
                      trial.effort.limit.stop()};
  if (is_fast) plan.sigma_groups = 150;
  PoseFit fit = refine_list(trial, *fits, candidate.warp, wanted, plan);
  const bool may_be_better = is_by_all(fit, is_turned, best)
                                 ? std::abs(fit.score) > std::abs(best.pose->fit.score)
                                 : final_score(fit) > best.score;
  if (!fit.valid || !may_be_better) return std::nullopt;
  const PixelList& last = is_fast && template_.many().count > 0 ? template_.many() : template_.full();
  fits->with_sigmas(last, plan, fit);
  if (!fit.valid) return std::nullopt;
  return Refined{fit, fit.warp, plan.freedom};
}

/// At half resolution, where noise is lower.
PoseSearch::Structure PoseSearch::structure(const Trial& trial, const PoseFit& fit) const {
  const int level = std::min(1, template_.top());
  PoseFit there = fit;
  there.warp = at_level(fit.warp, level);
  SampleImage from = sample_image(trial.image.level(level), trial.image.mask(level));
  const PixelList& pixels = template_.level(level).pixels;
  const double correlation = agreement(trial.refiner.gradient_correlation(from, pixels, there));
  from.sampling = Sampling::lagrange;  // bilinear values misfit at thin marks
  return {correlation, trial.refiner.contrast_share(from, pixels, there)};
}

double PoseSearch::agreement(double correlation) const {
  return options_.ignore_polarity ? std::abs(correlation) : std::max(0.0, correlation);
}

/// The score of a fit, reduced where edges agree too little.
double PoseSearch::score_of(const Trial& trial, const PoseFit& fit) const {
  const double demanded = demanded_structure(template_.level(std::min(1, template_.top())).pixels.count);
  const Structure seen = structure(trial, fit);
  return final_score(fit, seen.contrast) * std::min(1.0, seen.correlation / demanded);
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
PoseFit PoseSearch::fit_at(const Trial& trial, int level, const pose::Warp& start, const RefinementPlan& plan,
                           Sampling sampling) const {
  const int image_level = template_.image_level(level);
  SampleImage from = sample_image(trial.image.level(image_level), trial.image.mask(image_level));
  from.sampling = sampling;
  PoseFit fit = trial.refiner.refine(from, template_.level(level).pixels, at_level(start, level), plan);
  fit.warp = from_level(fit.warp, level);
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
  const auto other = refine_full(trial, start, is_turned, best);
  if (!other) return;
  const double reached = score_of(trial, other->fit);
  if (is_by_all(other->fit, is_turned, best) || reached > best.score) best.pose = other, best.score = reached;
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

/// Qualities of poses before full resolution, by the gain and offset of a fit; of those that are turned,
/// after steps of their centre, since a turn about a wrong pivot moves it. -1 outside the ranges. Bilinear
/// grey values would prefer poses on the image's grid.
std::vector<double> PoseSearch::qualities(const Trial& trial, const PoseFit& fit,
                                          std::vector<pose::Warp>& poses) const {
  const int level = std::min(1, template_.top());
  RefinementPlan plan = plan_at(level, trial.effort.limit);
  plan.freedom = Freedom::shift;
  plan.gain = fit.gain, plan.offset = fit.offset;
  const pose::Warp first = poses.front();
  std::vector<double> qualities;
  for (pose::Warp& warp : poses) {
    const bool is_slid = &warp != poses.data() && warp.xx == first.xx && warp.xy == first.xy;
    plan.most_steps = is_slid ? 0 : 2;
    const PoseFit here = is_in_range(warp) ? fit_at(trial, level, warp, plan, Sampling::lagrange) : PoseFit{};
    qualities.push_back(here.valid ? here.quality : -1);
    if (here.valid && !is_slid) warp = here.warp;
  }
  return qualities;
}

/// Unexplained variance, as a share, of the best pose and of any other that is as good. Poses that differ by
/// noise alone have some of its shares more; errors of interpolation are in no noise.
struct PoseSearch::Misfit {
  double best, same;
};

PoseSearch::Misfit PoseSearch::misfit(double quality) const {
  // The product of the noise of two images varies by the root of the number of pixels; three times that, and
  // pixels of half the resolution are correlated.
  constexpr double kOfInterpolation = 0.003, kShares = 20, kOfNoise = 5;
  const double pixels = std::max(1, template_.level(std::min(1, template_.top())).pixels.count);
  const double best = std::max(1 - quality * quality, kOfInterpolation);
  return {best, best * (1 + (kShares + kOfNoise * std::sqrt(pixels)) / pixels)};
}

/// Least quality of poses that are as good as one of this quality.
double PoseSearch::same_quality(double quality) const {
  return std::sqrt(std::max(0.0, 1 - misfit(quality).same));
}

/// Standard deviations along the loose motions of a pose, from how much worse the poses on both sides are.
std::vector<double> PoseSearch::loose_sigmas(const Trial& trial, const Refined& pose) const {
  constexpr double kOfFiltered = 1.6;  // noise of neighbouring pixels of half the resolution is correlated
  const int level = std::min(1, template_.top());
  const double step = 1 << level, pixels = template_.level(level).pixels.count;
  std::vector<double> sigmas;
  for (const PoseScatter::Vector& motion : pose.fit.loose) {
    std::vector<pose::Warp> poses = {pose.warp};
    for (const double way : {-step, step})
      poses.push_back(moved_along(pose.warp, motion, pose.freedom, template_.level(0).rim, way));
    const std::vector<double> quality = qualities(trial, pose.fit, poses);
    const Misfit here = misfit(std::max(0.0, quality[0]));
    const double beside = std::max({0.0, quality[1], quality[2]});
    const double worse = pixels * (1 - beside * beside - here.same) / here.best;
    sigmas.push_back(worse > 0 ? std::min(kLooseSigma, kOfFiltered * step / std::sqrt(worse)) : kLooseSigma);
  }
  return sigmas;
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
  const double least = same_quality(std::max(0.0, quality[0]));
  for (const std::size_t k : order) {
    if (tried.size() == kTried || quality[k] <= least) break;
    const bool is_known = std::ranges::any_of(tried, [&](const pose::Warp& known) {
      return is_same_pose(poses[k], known, template_.level(0).rim, 1.5 * step);
    });
    if (is_known) continue;
    tried.push_back(poses[k]);
    try_pose(trial, {.warp = poses[k], .gain = start.fit.gain, .offset = start.fit.offset}, false, best);
  }
  Refined& found = *best.pose;
  if (found.fit.loose.empty()) return;
  separate_turn(found.fit.loose, found.freedom, template_.level(0).rim);
  set_sigmas(found.freedom, template_.level(0).rim, loose_sigmas(trial, found), found.fit);
  found.fit = covering(found.fit, found.warp, poses, quality);
}

/// A fit with standard deviations that cover the poses which are as good as the best one.
PoseFit PoseSearch::covering(PoseFit fit, const pose::Warp& warp, const std::vector<pose::Warp>& poses,
                             const std::vector<double>& quality) const {
  const double least = same_quality(std::ranges::max(quality));
  double x = 0, y = 0, turn = 0, count = 0;
  for (std::size_t k = 0; k < poses.size(); ++k) {
    if (quality[k] <= 0 || quality[k] < least) continue;
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

/// Factor of the score: below 1 if a pose's standard deviation at the template's rim is large. Pixels that
/// resemble each other, as those of a blank area do, agree at many poses. The angle of a round template does
/// not count.
double PoseSearch::determination(const PoseFit& fit, const pose::Warp& warp) const {
  const double rim = template_.level(0).rim * pose::scale_of(warp);
  const double turn = template_.is_round() ? 0 : rim * fit.sigma_radians, growth = rim * fit.sigma_log_scale;
  const double motion = std::hypot(std::hypot(fit.sigma_x, fit.sigma_y), std::hypot(turn, growth));
  const double allowed = (is_whole(fit) ? kWholeDetermined : kDetermined) * rim;
  return motion > allowed ? allowed / motion : 1;
}

/// True if full resolution takes much longer than some of its pixels.
bool PoseSearch::has_many_pixels() const {
  return template_.full().count > 4 * template_.level(0).pixels.count;
}

/// True if a pose of a large template relies on hiding pixels with much of the contrast, and those that are
/// left do not determine it by far: to settle it would take long and end nowhere.
bool PoseSearch::is_hopeless(const Best& best) const {
  constexpr double kHidesMuch = 0.7;
  const Refined& pose = *best.pose;
  return has_many_pixels() && !is_whole(pose.fit) &&
         std::abs(pose.fit.score) < kHidesMuch * std::abs(pose.fit.fit_score) &&
         best.score * determination(pose.fit, pose.warp) < options_.threshold / 2;
}

/// True if half of the resolution tells that a candidate of a large template will not be determined: full
/// resolution would take long and end nowhere.
bool PoseSearch::is_open(const Trial& trial, const Candidate& candidate) const {
  const int level = 1;
  if (trial.effort.is_fast || template_.top() < level || !has_many_pixels()) return false;
  RefinementPlan plan = plan_at(level, trial.effort.limit);
  plan.gain = candidate.gain, plan.offset = candidate.offset;
  PoseFit fit = fit_at(trial, level, candidate.warp, plan);
  if (!fit.valid) return false;
  const pose::Warp warp = fit.warp;
  fit.warp = at_level(warp, level);
  const TemplateLevel& source = template_.level(level);
  trial.refiner.with_sigmas(sample_image(trial.image.level(level), trial.image.mask(level)), source.pixels,
                            plan, fit);
  if (!fit.valid || fit.loose.empty() || is_whole(fit)) return !fit.valid;
  const double unit = 1 << level;
  fit.sigma_x *= unit, fit.sigma_y *= unit;
  constexpr double kApart = 4;  // units: whether there are others that are as good is seen in few poses
  std::vector<pose::Warp> poses =
      poses_along(warp, fit.loose, freedom_, template_.level(0).rim, kApart * unit);
  const std::vector<double> quality = qualities(trial, fit, poses);
  return final_score(fit) * determination(covering(fit, warp, poses, quality), warp) <
         kHopeless * options_.threshold;
}

/// True if a pose is that of a match.
bool PoseSearch::is_known(const pose::Warp& warp, std::span<const Match> matches, double unit) const {
  return std::ranges::any_of(matches, [&](const Match& m) {
    const pose::Warp known = pose::similarity(m.center_x, m.center_y, m.rotation_deg * kDegree, m.scale);
    return is_same_pose(warp, known, template_.level(0).rim, unit);
  });
}

/// Measures a candidate; none if it leads to one of the known matches.
std::optional<PoseSearch::Measured> PoseSearch::finish(const Trial& trial, const Candidate& candidate,
                                                       const Match& pose,
                                                       std::span<const Match> known) const {
  if (is_open(trial, candidate)) return std::nullopt;
  Best best;
  try_pose(trial, candidate, false, best);
  if (best.pose && is_known(best.pose->warp, known, kSameUnit)) return std::nullopt;
  if (best.pose && best.score >= options_.threshold && hides_pixels(best.pose->fit))
    if (const auto other = pose_of_all(trial, best.pose->warp))
      try_pose(trial, {.warp = *other}, false, best);
  try_symmetries(trial, candidate.warp, best);
  const bool may_be_match = best.pose && best.score >= options_.threshold - 2 * kRise;
  if (may_be_match && !best.pose->fit.loose.empty() && !is_hopeless(best)) settle_loose_motion(trial, best);
  if (!best.pose) return std::nullopt;
  const PoseFit& fit = best.pose->fit;
  if (!is_in_range(best.pose->warp, fit.sigma_radians, fit.sigma_log_scale)) return std::nullopt;
  Match match = match_at(best.pose->warp, candidate, pose);
  match.score = best.score * determination(fit, best.pose->warp);
  match.refined = true;
  match.visible = fit.visible;
  match.sigma_x = fit.sigma_x, match.sigma_y = fit.sigma_y;
  match.sigma_rotation_deg = fit.sigma_radians / kDegree;
  match.sigma_scale = fit.sigma_log_scale * match.scale;
  return Measured{match, best.score, !fit.loose.empty()};
}

std::vector<MatchResult> PoseSearch::find_all(std::span<const Request> requests, const Setting& setting) {
  std::vector<Run> runs;
  for (const Request& request : requests) {
    Run run{request.search, request.pose};
    run.wanted.resize(run.search->poses_.count());
    std::iota(run.wanted.begin(), run.wanted.end(), 0);
    runs.push_back(std::move(run));
  }
  return find(runs, setting, {setting.limit, requests.front().search->options_.max_matches});
}

MatchResult PoseSearch::find_near(const Match& last, const Setting& setting) {
  constexpr double kNear = 1.6;  // coarse poses to each side
  const double rim = std::max(1.0, template_.level(template_.top()).rim), near = kNear * kPoseStep / rim;
  Run run{this, last};
  for (int p = 0; p < poses_.count(); ++p) {
    const double turn = std::remainder(poses_.angle(p) - last.rotation_deg * kDegree, 2 * std::numbers::pi);
    const bool is_near = (!options_.rotation_range || std::abs(turn) <= near) &&
                         (!options_.scale_range || std::abs(std::log(poses_.scale(p) / last.scale)) <= near);
    if (is_near) run.wanted.push_back(p);
  }
  return find({&run, 1}, setting, {setting.limit, 1, true}).front();
}

/// Takes at most `most` of the waiting candidates, which are sorted by their scores, that may reach the score
/// `least`. Drops those that are at the pose of an accepted match or overlap one which they cannot surpass.
/// Those that overlap such a candidate of the batch wait for what becomes of it.
std::vector<PoseSearch::Candidate> PoseSearch::next_batch(std::vector<Candidate>& waiting, std::size_t most,
                                                          double least, const Match& pose,
                                                          const std::vector<Match>& accepted) const {
  const auto is_hidden = [&](const Match& place, const std::vector<Match>& others) {
    const auto may_win =
        std::ranges::find_if(others, [&](const Match& other) { return other.score < place.score + kRise; });
    return is_suppressed(place, {others.begin(), may_win}, options_.max_overlap);
  };
  std::vector<Candidate> batch, others;
  std::vector<Match> places;  // of the batch
  for (const Candidate& candidate : waiting) {
    if (candidate.score < least - kRise) break;
    Match place = match_at(candidate.warp, candidate, pose);
    place.score = candidate.score;
    if (is_known(candidate.warp, accepted, 2) || is_hidden(place, accepted)) continue;
    if (batch.size() == most || is_hidden(place, places)) {
      others.push_back(candidate);
      continue;
    }
    batch.push_back(candidate);
    places.push_back(place);
  }
  waiting = std::move(others);
  return batch;
}

std::vector<MatchResult> PoseSearch::find(std::span<Run> runs, const Setting& setting, const Effort& effort) {
  set_image(runs, setting);
  const auto together = static_cast<std::size_t>(setting.backend.templates_together());
  const std::size_t parts = runs.empty() ? 0 : (runs.size() - 1) / together + 1;
  setting.pool.parallel_for(static_cast<std::int64_t>(parts), 1, [&](std::int64_t k, std::int64_t, int) {
    const std::size_t first = k * together;
    find_together(runs.subspan(first, std::min(together, runs.size() - first)), setting, effort);
  });
  std::vector<MatchResult> results;
  for (Run& run : runs) results.push_back(std::move(run.result));
  return results;
}

/// Prepares the levels of the image, which several threads then read.
void PoseSearch::set_image(std::span<const Run> runs, const Setting& setting) {
  int top = 0;
  std::map<int, int> margins;  // by level
  for (const Run& run : runs) {
    const int level = run.search->top_of_image();
    if (level == 0) setting.image.require_full(setting.pool);
    top = std::max(top, level);
    margins[level] = std::max(margins[level], run.search->coarse_margin());
  }
  setting.backend.set_image(setting.image, top);
  for (const auto& [level, margin] : margins) setting.image.coarse(level, margin, setting.pool);
}

void PoseSearch::find_together(std::span<Run> runs, const Setting& setting, const Effort& effort) {
  std::vector<CoarseSearch> coarse(runs.size());
  const auto for_each_run = [&](const auto& body) {
    setting.pool.parallel_for(std::ssize(runs), 1,
                              [&](std::int64_t k, std::int64_t, int) { body(runs[k], k); });
  };
  for_each_run([&](Run& run, std::int64_t k) {
    coarse[k] = run.search->coarse_search(setting.image, run.wanted, effort);
  });
  if (setting.limit.is_over()) {  // patterns may be missing
    for (Run& run : runs) run.result.timed_out = true;
    return;
  }
  setting.backend.find_maxima(coarse, setting.limit);
  for_each_run([&](Run& run, std::int64_t k) {
    run.candidates = run.search->candidates_of(coarse[k]);
    if (!run.candidates.empty()) run.result.best_score = run.candidates.front().score;
  });
  int top = 0;
  for (const Run& run : runs) top = std::max(top, run.search->template_.top());
  for (int level = top; level >= 1; --level)
    for (int image_level = level; image_level >= 1; --image_level)
      refine_level(runs, level, image_level, setting, effort.is_fast);
  for_each_run([&](Run& run, std::int64_t) { run.search->measure(run, setting, effort); });
}

/// The matches above the threshold. A loose pose is only as well determined as others that show the same part
/// nearly as well: of many, one may seem determined by chance.
std::vector<Match> PoseSearch::determined(std::span<const Measured> measured) const {
  constexpr double kAsWell = 0.002;
  const auto is_match = [&](const Measured& m) {
    return m.match.score >= options_.threshold - kScoreRounding;
  };
  std::vector<Match> found;
  for (const Measured& m : measured) {
    if (!is_match(m)) continue;
    const bool is_open = m.is_loose && std::ranges::any_of(measured, [&](const Measured& other) {
                           return other.is_loose && !is_match(other) &&
                                  other.agreement >= m.agreement - kAsWell &&
                                  is_suppressed(m.match, {other.match}, options_.max_overlap);
                         });
    if (!is_open) found.push_back(m.match);
  }
  return found;
}

/// Measures the candidates in order until no other one can be among the best.
void PoseSearch::measure(Run& run, const Setting& setting, const Effort& effort) {
  const SearchLimit& limit = effort.limit;
  std::vector<Candidate>& waiting = run.candidates;
  MatchResult& result = run.result;
  std::vector<Measured> measured;
  std::vector<Match>
      known;  // also those beyond the wanted number, at which others need not be measured again
  double best = -1;
  // The best candidates are mostly those that are wanted; others are worth measuring at the same time.
  std::size_t most = std::min<std::size_t>(effort.matches, kMostTogether);
  for (; !limit.is_over(); most = std::min(2 * most, kMostTogether)) {
    const bool is_full = static_cast<int>(result.matches.size()) == effort.matches;
    const double least =
        is_full ? std::max(options_.threshold, result.matches.back().score) : options_.threshold;
    const std::vector<Candidate> batch = next_batch(waiting, most, least, run.pose, known);
    if (batch.empty()) break;
    std::vector<std::optional<Measured>> matches(batch.size());
    pool_.parallel_for(std::ssize(batch), 1, [&](std::int64_t k, std::int64_t, int worker) {
      if (!limit.is_over())
        matches[k] = finish({setting.image, effort, refiners_[worker], pixels_[worker], setting.backend},
                            batch[k], run.pose, known);
    });
    for (const auto& match : matches) {
      if (!match) continue;
      best = std::max(best, match->match.score);
      measured.push_back(*match);
    }
    std::vector<Match> found = determined(measured);
    std::ranges::stable_sort(found, [](const Match& a, const Match& b) { return a.score > b.score; });
    known = suppress_non_maxima(found, options_.max_overlap, static_cast<int>(found.size()));
    const std::size_t wanted = std::min<std::size_t>(known.size(), effort.matches);
    result.matches.assign(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(wanted));
  }
  if (best > -1) result.best_score = best;
  result.timed_out = limit.is_over();
}

}  // namespace dic::match

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/match.hpp>
#include <dic/refine.hpp>
#include <iterator>
#include <limits>

#include "core/device_name.hpp"
#include "core/parallel.hpp"
#include "match/box.hpp"
#include "match/candidates.hpp"
#include "match/faint_pattern.hpp"
#include "match/pattern.hpp"
#include "match/pose_search.hpp"
#include "match/subpixel.hpp"

namespace dic {

using namespace match;
namespace {

/// Largest height of a peak between four pixels above each of them: that of a speckle of 1.4 px (sigma 0.7).
constexpr double kSamplingLoss = 0.25;
/// Amount by which an exact copy's score may be too low: scores are floats from sums of rounded products.
constexpr double kScoreRounding = 1e-6;
/// Products at the coarsest level, per thread, from which a GPU is faster.
constexpr double kGpuWork = 2e6;
/// Amount by which the quadratic through the surface may underestimate the score at the peak.
constexpr double kEstimateError = 0.1;

std::string size_text(int width, int height) {
  return std::to_string(width) + " x " + std::to_string(height) + " px";
}

Correlator make_correlator(const std::string& device, core::ThreadPool& pool) {
  if (device != "auto") return correlate::open_correlator(device, pool);
  try {
    return correlate::open_correlator("cuda", pool);
  } catch (const DeviceError&) {
    return correlate::open_correlator("cpu", pool);
  }
}

void check_contrast(const Template& made, std::size_t index, Criterion method) {
  const std::string name = "Template " + std::to_string(index + 1);
  if (method == Criterion::zncc && made.min == made.max)
    throw UsageError(name +
                     " has the same grey level everywhere, and zncc needs contrast; take a patch with" +
                     " detail, or method ssd.");
  if (method == Criterion::ncc && made.min == 0 && made.max == 0)
    throw UsageError(name +
                     " is zero everywhere, and ncc needs grey levels; take another patch, or method ssd.");
}

/// Text of a pixel depth: "8 bit", "float".
std::string depth_text(ScalarType type, int bit_depth) {
  if (type == ScalarType::f32 || type == ScalarType::f64) return "float";
  return std::to_string(bit_depth > 0 ? bit_depth : static_cast<int>(8 * size_of(type))) + " bit";
}

void check_types(const Template& made, ImageView image, Criterion method) {
  const std::string ours = depth_text(made.type, made.bit_depth);
  const std::string theirs = depth_text(image.type, image.bit_depth);
  if (method == Criterion::ssd && ours != theirs)
    throw UsageError("ssd compares grey levels as they are, but the template is " + ours + " and the image " +
                     theirs + "; use zncc or ncc, or convert one of them.");
  const bool is_unsigned = image.type == ScalarType::u8 || image.type == ScalarType::u16;
  if (method == Criterion::ncc && made.min < 0 && is_unsigned)
    throw UsageError(
        "ncc cannot compare a template that has values below zero with an image that has none; use"
        " zncc.");
}

/// Sum of squares of the image under the elements inside the pattern's mask.
double energy_under(const Pattern& pattern, ImageView image, const Candidate& at) {
  return visit_scalar(image.type, [&]<typename T>(T) {
    double sum = 0;
    for (int j = 0; j < pattern.mask.height(); ++j) {
      const T* row = image.row<T>(at.y + j) + at.x;
      const std::uint8_t* counts = pattern.mask.row<std::uint8_t>(j);
      for (int i = 0; i < pattern.mask.width(); ++i) sum += counts[i] ? double(row[i]) * row[i] : 0.0;
    }
    return sum;
  });
}

Candidate candidate_at(const Peak& peak, bool is_minimum) {
  float around[9];
  std::transform(peak.neighbourhood, peak.neighbourhood + 9, around,
                 [&](float value) { return is_minimum ? -value : value; });
  const auto [offset_x, offset_y] = peak_offset(std::span<const float, 9>(around));
  return {peak.dx, peak.dy, around[4], offset_x, offset_y, around[4]};
}

/// The image, if its pixels can be read. Throws UsageError.
ImageView checked(ImageView image) {
  return ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
}

/// Candidates by NCC of a pattern for which floats near 1 are too coarse.
std::vector<Candidate> faint_candidates(const Pattern& pattern, ImageView image, double lowest,
                                        Correlator& correlator, core::ThreadPool& pool) {
  const std::vector<float> surface = ncc_below_one(pattern, image, correlator, pool);
  const int nx = image.width - pattern.values.width() + 1, ny = image.height - pattern.values.height() + 1;
  std::vector<Candidate> candidates = find_candidates({surface.data(), nx, ny}, lowest - 1, pool);
  // Beside other parts of the image, which are far darker or brighter, estimates between pixels are too high.
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::value);
  for (Candidate& candidate : candidates) candidate.estimate = candidate.value += 1;
  return candidates;
}

double energy(const Pattern& pattern) { return energy_under(pattern, pattern.values, {}); }

}  // namespace

std::vector<std::string> MatchOptions::validate() const {
  std::vector<std::string> found;
  if (method == Criterion::cross_correlation) found.push_back("The method must be zncc, ncc or ssd.");
  if (max_matches < 1) found.push_back("The number of matches must be at least 1.");
  if (!(threshold >= -1 && threshold <= 1)) found.push_back("The threshold must be between -1 and 1.");
  if (!(max_overlap >= 0 && max_overlap <= 1)) found.push_back("The overlap must be between 0 and 1.");
  if (rotations.empty())
    found.push_back("There must be at least one rotation; 0 leaves the template as it is.");
  constexpr double kMostDegrees = 1e6;  // larger floating-point angles have lost their fraction
  if (!std::all_of(rotations.begin(), rotations.end(),
                   [](double angle) { return std::abs(angle) <= kMostDegrees; }))
    found.push_back("A rotation must be a number of degrees, at most a million in size.");
  if (scales.empty()) found.push_back("There must be at least one scale; 1 leaves the template as it is.");
  // Templates of other scales would have no pixel, or billions.
  const auto is_scale = [](double scale) { return scale >= 0.01 && scale <= 100; };
  if (!std::ranges::all_of(scales, is_scale)) found.push_back("A scale must be between 0.01 and 100.");
  if (threads < 0) found.push_back("The number of threads must be 0 (one per core) or more.");
  if (const bool poses = rotation_range || scale_range; poses && method != Criterion::zncc)
    found.push_back("A range of poses is searched with zncc only; give a step, or leave out the method.");
  if (rotation_range &&
      !(rotation_range->min <= rotation_range->max && std::abs(rotation_range->min) <= kMostDegrees &&
        std::abs(rotation_range->max) <= kMostDegrees))
    found.push_back("A range of rotations must go from a smaller to a larger number of degrees.");
  if (scale_range &&
      !(is_scale(scale_range->min) && is_scale(scale_range->max) && scale_range->min <= scale_range->max))
    found.push_back(
        "A range of scales must go from a smaller to a larger number, both between 0.01 and 100.");
  if ((affine || ignore_polarity || timeout_ms > 0) && !rotation_range && !scale_range)
    found.push_back(
        "An affine refinement, ignored polarity and a timeout need a range of rotations or scales.");
  if (timeout_ms < 0) found.push_back("The timeout must be 0 (none) or more milliseconds.");
  return found;
}

struct Matcher::Impl {
  MatchOptions options;
  core::ThreadPool pool;
  Correlator correlator;
  std::vector<Template> templates;
  std::vector<std::unique_ptr<PoseSearch>>
      pose_searches;                                  ///< one per template if ranges of poses are searched
  std::unique_ptr<PoseBackend> cpu_poses, gpu_poses;  ///< none: not searched, or no GPU
  ImagePyramid pyramid;
  Surfaces surfaces;
  std::vector<Peak> peaks;

  explicit Impl(const MatchOptions& from)
      : options(from), pool(from.threads), correlator(make_correlator(from.device, pool)) {}

  bool searches_poses() const { return options.rotation_range || options.scale_range; }
  MatchResult find_template(std::size_t index, ImageView image, std::stop_token stop);
  std::vector<MatchResult> find_poses(int first, int count, const std::stop_token& stop);
  PoseBackend& backend_for(int first, int count, ImageView image);
  void open_pose_backends();
  void set_image(ImageView image, ImageView mask);
  void check_index(int template_index) const;
  MatchResult find_pattern(const Pattern& pattern, const Match& pose, ImageView image, std::stop_token stop);
  struct Search;
  std::vector<Candidate> next_batch(const Search& search, std::span<const Candidate> candidates,
                                    std::size_t& next, const std::vector<Match>& accepted) const;
  std::vector<SubpixelFit> fit_all(const Search& search, const std::vector<Candidate>& batch);
  std::vector<Candidate> correlate(const Pattern& pattern, ImageView image, std::stop_token stop);
};

Matcher::Matcher(std::span<const ImageView> templates, const MatchOptions& options,
                 std::span<const ImageView> masks) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  if (!masks.empty() && masks.size() != templates.size())
    throw UsageError("There are " + std::to_string(masks.size()) + " masks for " +
                     std::to_string(templates.size()) + " templates; give one mask per template, or none.");
  impl_ = std::make_unique<Impl>(options);
  for (std::size_t k = 0; k < templates.size(); ++k) {
    impl_->templates.push_back(make_template(templates[k], masks.empty() ? ImageView{} : masks[k]));
    check_contrast(impl_->templates.back(), k, options.method);
  }
  if (!impl_->searches_poses()) return;
  for (const Template& made : impl_->templates)
    impl_->pose_searches.push_back(std::make_unique<PoseSearch>(made, impl_->options, impl_->pool));
  impl_->open_pose_backends();
}

Matcher::~Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

int Matcher::templates() const { return static_cast<int>(impl_->templates.size()); }

const MatchOptions& Matcher::options() const { return impl_->options; }

MatchResult Matcher::find(ImageView image, std::stop_token stop, ImageView image_mask) {
  MatchResult all;
  for (MatchResult& found : find_each(image, std::move(stop), image_mask)) all.add(std::move(found));
  return all;
}

std::vector<MatchResult> Matcher::find_each(ImageView image, std::stop_token stop, ImageView image_mask) {
  std::vector<MatchResult> results;
  if (!impl_->searches_poses()) {
    for (int k = 0; k < templates(); ++k) results.push_back(find_template(k, image, stop, image_mask));
    return results;
  }
  impl_->set_image(image, image_mask);
  // The time of a search counts for each template.
  const int together = options().timeout_ms > 0 ? 1 : templates();
  for (int k = 0; k < templates(); k += together)
    std::ranges::move(impl_->find_poses(k, together, stop), std::back_inserter(results));
  return results;
}

MatchResult Matcher::find_template(int template_index, ImageView image, std::stop_token stop,
                                   ImageView image_mask) {
  impl_->check_index(template_index);
  if (impl_->searches_poses()) {
    impl_->set_image(image, image_mask);
    return std::move(impl_->find_poses(template_index, 1, stop).front());
  }
  if (!image_mask.empty()) throw UsageError("A mask of the image needs a range of rotations or scales.");
  return impl_->find_template(template_index, checked(image), stop);
}

MatchResult Matcher::find_again(const Match& last, ImageView image, std::stop_token stop) {
  if (!impl_->searches_poses()) return find_template(last.template_index, image, stop);
  impl_->check_index(last.template_index);
  impl_->set_image(image, {});
  const SearchLimit limit(stop, impl_->options.timeout_ms);
  return impl_->pose_searches[last.template_index]->find_near(
      last, {impl_->pyramid, *impl_->cpu_poses, impl_->pool, limit});
}

void Matcher::Impl::check_index(int template_index) const {
  if (template_index < 0 || template_index >= std::ssize(templates))
    throw UsageError("There is no template " + std::to_string(template_index) + ": there are " +
                     std::to_string(templates.size()) + ", counted from 0.");
}

/// Begins a search of poses in an image.
void Matcher::Impl::set_image(ImageView image, ImageView mask) {
  if (!mask.empty() && (mask.width != image.width || mask.height != image.height))
    throw UsageError("The image's mask has " + size_text(mask.width, mask.height) + ", the image " +
                     size_text(image.width, image.height) + "; they must have the same size.");
  pyramid.set(checked(image), mask.empty() ? mask : checked(mask), pool);
}

void Matcher::Impl::open_pose_backends() {
  cpu_poses = open_cpu_poses(pool);
  const bool is_automatic = options.device == "auto";
  const core::DeviceName device = core::parse_device(is_automatic ? "cuda" : options.device);
  if (device.backend != "cuda") return;
  try {
    gpu_poses = open_cuda_poses(device.ordinals.empty() ? 0 : device.ordinals.front(), pool);
  } catch (const DeviceError&) {
    if (!is_automatic) throw;
  }
}

PoseBackend& Matcher::Impl::backend_for(int first, int count, ImageView image) {
  if (!gpu_poses) return *cpu_poses;
  if (options.device != "auto") return *gpu_poses;
  double work = 0;
  for (int k = first; k < first + count; ++k) work += pose_searches[k]->coarse_work(image);
  return work > kGpuWork * pool.size() ? *gpu_poses : *cpu_poses;
}

/// Finds the matches of some templates within ranges of rotations and scales.
std::vector<MatchResult> Matcher::Impl::find_poses(int first, int count, const std::stop_token& stop) {
  std::vector<PoseSearch::Request> requests;
  for (int k = first; k < first + count; ++k) {
    Match pose;
    pose.template_index = k;
    pose.width = templates[k].values.width();
    pose.height = templates[k].values.height();
    requests.push_back({pose_searches[k].get(), pose});
  }
  const SearchLimit limit(stop, options.timeout_ms);
  return PoseSearch::find_all(requests, {pyramid, backend_for(first, count, pyramid.image()), pool, limit});
}

/// Finds the matches of one template at all rotations and scales.
MatchResult Matcher::Impl::find_template(std::size_t index, ImageView image, std::stop_token stop) {
  const Template& source = templates[index];
  check_types(source, image, options.method);
  Match pose;
  pose.template_index = static_cast<int>(index);
  pose.width = source.values.width();
  pose.height = source.values.height();
  bool fits = false;
  MatchResult result;
  for (const double scale : options.scales) {
    const TemplateWarp warp(source, scale, pool);
    for (const double rotation : options.rotations) {
      if (stop.stop_requested()) throw Cancelled("Template matching was cancelled.");
      const auto pattern = warp.at(rotation, image.width, image.height);
      if (!pattern) continue;
      fits = true;
      pose.rotation_deg = rotation;
      pose.scale = scale;
      result.add(find_pattern(*pattern, pose, image, stop));
    }
  }
  if (!fits)
    throw UsageError("Template " + std::to_string(index + 1) + " (" + size_text(pose.width, pose.height) +
                     ") does not fit into the image (" + size_text(image.width, image.height) +
                     "); take a smaller template or another scale.");
  result.matches = suppress_non_maxima(result.matches, options.max_overlap, options.max_matches);
  return result;
}

/// A pattern that is compared with places of an image.
struct Matcher::Impl::Search {
  const Pattern& pattern;
  const Match& pose;  ///< template, rotation and scale of the matches
  ImageView image;
  double pattern_energy;
  const std::stop_token& stop;

  Match place(double x, double y) const {
    Match match = pose;
    match.x = x - pattern.origin_x;
    match.y = y - pattern.origin_y;
    match.center_x = match.x + pattern.center_x;
    match.center_y = match.y + pattern.center_y;
    return match;
  }
  double estimated_score(const Candidate& at, Criterion method) const {
    if (method != Criterion::ssd) return at.estimate;
    return 1 + at.estimate / (pattern_energy + energy_under(pattern, image, at));
  }
};

/// Takes the next candidates that can be fitted at the same time, from `next` on: none overlaps an accepted
/// match or another one of them, so that fitting one does not decide about another.
std::vector<Candidate> Matcher::Impl::next_batch(const Search& search, std::span<const Candidate> candidates,
                                                 std::size_t& next,
                                                 const std::vector<Match>& accepted) const {
  const std::size_t most = std::min(pool.size(), options.max_matches - static_cast<int>(accepted.size()));
  std::vector<Candidate> batch;
  std::vector<Match> places;
  for (; next < candidates.size() && batch.size() < most; ++next) {
    const Candidate& candidate = candidates[next];
    const Match place = search.place(candidate.x, candidate.y);
    if (is_suppressed(place, accepted, options.max_overlap)) continue;
    // The first candidate has the best score, which is always reported.
    if (next > 0 && search.estimated_score(candidate, options.method) < options.threshold - kEstimateError)
      continue;
    if (is_suppressed(place, places, options.max_overlap)) break;
    places.push_back(place);
    batch.push_back(candidate);
  }
  return batch;
}

/// Fits some candidates at the same time.
std::vector<SubpixelFit> Matcher::Impl::fit_all(const Search& search, const std::vector<Candidate>& batch) {
  std::vector<SubpixelFit> fits(batch.size());
  pool.parallel_for(std::ssize(batch), 1, [&](std::int64_t k, std::int64_t, int) {
    fits[k] = fit_subpixel(search.pattern, search.image, batch[k], options.method, pool, search.stop);
  });
  return fits;
}

/// Finds the best places of a pattern that do not overlap. `pose` holds template, rotation and scale.
MatchResult Matcher::Impl::find_pattern(const Pattern& pattern, const Match& pose, ImageView image,
                                        std::stop_token stop) {
  const Search search{pattern, pose, image, energy(pattern), stop};
  MatchResult result;
  std::vector<Match>& accepted = result.matches;
  const std::vector<Candidate> candidates = correlate(pattern, image, stop);
  for (std::size_t next = 0; static_cast<int>(accepted.size()) < options.max_matches;) {
    const std::vector<Candidate> batch = next_batch(search, candidates, next, accepted);
    if (batch.empty()) break;
    const std::vector<SubpixelFit> fits = fit_all(search, batch);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      // A fit moves a match by less than a pixel, which may be enough to overlap the next candidate.
      if (is_suppressed(search.place(batch[k].x, batch[k].y), accepted, options.max_overlap)) continue;
      const SubpixelFit& fit = fits[k];
      result.best_score = std::max(result.best_score, fit.score);
      if (fit.score < options.threshold - kScoreRounding) continue;
      accepted.push_back(search.place(fit.x, fit.y));
      accepted.back().score = fit.score;
    }
  }
  return result;
}

/// Candidates of a pattern that lie completely inside the image. If only one match is wanted, returns only
/// the peak, so that no surface is stored and searched.
std::vector<Candidate> Matcher::Impl::correlate(const Pattern& pattern, ImageView image,
                                                std::stop_token stop) {
  if (options.method == Criterion::ncc && is_faint(pattern))
    return faint_candidates(pattern, image, options.threshold - kSamplingLoss, correlator, pool);
  const Image elements = to_elements(pattern, image.type, options.method);
  const ImageView reference = elements, mask = pattern.mask;
  const PatchPosition corner;
  CorrelateRequest request;
  request.reference = {{&reference, 1}, {&corner, 1}, {reference.width, reference.height}};
  request.search = {{&image, 1}, {&corner, 1}, {image.width, image.height}};
  request.shifts = Shifts::valid({reference.width, reference.height}, {image.width, image.height});
  request.criterion = options.method;
  request.variant = options.variant;
  request.stop = stop;
  if (pattern.is_masked()) request.reference_mask = {&mask, 1};
  const bool is_ssd = options.method == Criterion::ssd;
  if (options.max_matches == 1) {
    correlator.peaks(request, peaks);
    return {candidate_at(peaks.front(), is_ssd)};
  }
  const double lowest = is_ssd ? std::numeric_limits<float>::lowest() : options.threshold - kSamplingLoss;
  if (!is_ssd) request.least_score = static_cast<float>(lowest);
  correlator.surfaces(request, surfaces);
  float* values = surfaces.surface<float>(0);
  if (is_ssd)  // negated, so that matches are maxima; undefined = -infinity
    std::transform(values, values + request.shifts.count(), values, [](float ssd) {
      return ssd < std::numeric_limits<float>::max() ? -ssd : -std::numeric_limits<float>::infinity();
    });
  return find_candidates({values, surfaces.nx, surfaces.ny}, lowest, pool);
}

void MatchResult::add(MatchResult other) {
  matches.insert(matches.end(), other.matches.begin(), other.matches.end());
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.score > b.score; });
  best_score = std::max(best_score, other.best_score);
  timed_out |= other.timed_out;
}

MatchResult match_templates(std::span<const ImageView> templates, std::span<const ImageView> images,
                            const MatchOptions& options, std::span<const ImageView> masks,
                            std::stop_token stop) {
  Matcher matcher(templates, options, masks);
  MatchResult all;
  for (std::size_t k = 0; k < images.size(); ++k) {
    MatchResult result = matcher.find(images[k], stop);
    for (Match& match : result.matches) match.image = static_cast<int>(k);
    all.add(std::move(result));
  }
  return all;
}

}  // namespace dic

#include "track/sequence.hpp"

#include <algorithm>
#include <cstring>
#include <dic/error.hpp>
#include <utility>

#include "core/cuda_devices.hpp"
#include "core/device_name.hpp"
#include "track/corrected_result.hpp"
#include "track/direct_result.hpp"
#include "track/global_result.hpp"
#include "track/host_pixels.hpp"
#include "track/order_choice.hpp"
#include "track/self_similarity.hpp"
#include "track/stopwatch.hpp"
#include "track/subset_choice.hpp"

namespace dic::track {
namespace {

/// Share of the points in view that must be found, or the active reference is replaced (strategy automatic).
constexpr double kLeastFound = 0.9;
/// Share of the points in view that must be found in a frame for it to become the reference.
constexpr double kLeastFollowed = 0.1;

bool everywhere(const Image& mask) {
  for (int y = 0; y < mask.height(); ++y)
    if (std::memchr(mask.row<std::uint8_t>(y), 0, mask.width())) return false;
  return true;
}

std::unique_ptr<Backend> open(const std::string& device, const TrackOptions& options,
                              const ImageView& reference, const Points& points) {
  const auto open_one = [&](const TrackOptions& one) {
    const DeviceName name = parse_device(device);
    return name.backend == "cpu" ? open_cpu(one, points) : open_cuda(one, reference, points, name.ordinals);
  };
  return options.automatic_order ? with_both_orders(open_one, options) : open_one(options);
}

/// Throws UsageError where the members of a view that nobody checked lead outside.
void check_pixels(ImageView image) {
  ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
}

/// The ROI of a measurement that can be made.
Image checked_roi(const TrackOptions& options, ImageView reference, const Roi& roi) {
  check_pixels(reference);
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
  if (reference.empty()) throw UsageError("The reference image is empty.");
  if (!options.sigma_target && options.refine.subset > std::min(reference.width, reference.height))
    throw UsageError("The subset of " + std::to_string(options.refine.subset) +
                     " px is larger than the image (" + std::to_string(reference.width) + "x" +
                     std::to_string(reference.height) + " px); choose a smaller --subset.");
  if (options.camera) {
    const Size expected = options.camera->parameters().image;
    if (expected != reference.size())
      throw UsageError("The camera takes images of " + std::to_string(expected.width) + "x" +
                       std::to_string(expected.height) + " px, but the reference has " +
                       std::to_string(reference.width) + "x" + std::to_string(reference.height) +
                       " px: calibrate with images of the same size.");
  }
  return rasterize(roi, reference.size());
}

std::optional<PowerSpectrum> spectrum_of(ImageView reference, const Points& points, bool on_gpu) {
  return PowerSpectrum::of(HostPixels(reference, on_gpu).view(), points);
}

/// Variance of the noise of an image, grey levels^2, before any frame is measured.
double noise_variance(const TrackOptions& options, const PowerSpectrum& spectrum) {
  return options.noise ? *options.noise * *options.noise : spectrum.noise_variance();
}

Prefilter prefilter_of(TrackOptions options, const std::optional<PowerSpectrum>& spectrum, bool on_gpu) {
  if (!options.prefilter && spectrum)
    options.prefilter =
        best_prefilter(*spectrum, noise_variance(options, *spectrum), options.refine.interpolation);
  return Prefilter(options, spectrum, on_gpu);
}

/// The options with every choice made that follows from the reference.
TrackOptions chosen(TrackOptions options, const Prefilter& prefilter,
                    const std::optional<PowerSpectrum>& spectrum, ImageView reference, ImageView roi,
                    const Points& points, bool on_gpu) {
  options.prefilter = prefilter.sigma();
  if (!options.sigma_target) return options;
  if (!spectrum)
    throw UsageError("The image is too small to choose a subset for a demanded sigma: choose --subset.");
  const double noise = noise_variance(options, *spectrum);
  const FilteredEnergies energies =
      energies_after(*spectrum, noise, options.refine.interpolation, prefilter.sigma());
  const HostPixels pixels(reference, on_gpu);
  const Image filtered = prefilter.enabled() ? prefilter(pixels.view()) : Image();
  refine::SubsetSigmas sigmas(options.refine, options.threads,
                              prefilter.enabled() ? filtered.view() : pixels.view(), roi);
  options.refine.subset = smallest_subset(sigmas, points, energies.noise_by_matrix(noise),
                                          *options.sigma_target, std::min(reference.width, reference.height));
  return options;
}

/// sigma knows of the bias that is not subtracted, and of edges that no spline can follow.
TrackOptions with_known_bias(TrackOptions options, const std::optional<PowerSpectrum>& spectrum) {
  if (!spectrum) return options;
  const double noise = noise_variance(options, *spectrum);
  RefineOptions& refine = options.refine;
  if (*options.prefilter == 0)
    refine.edge_gradient = sharp_edge_gradient(*spectrum, noise, refine.interpolation);
  if (options.anti_bias) return options;
  const auto bias = largest_bias(*spectrum, noise, refine.interpolation, *options.prefilter);
  refine.interpolation_bias_u = bias[0];
  refine.interpolation_bias_v = bias[1];
  return options;
}

std::shared_ptr<const InterpolationBias> bias_of(const TrackOptions& options,
                                                 const std::optional<PowerSpectrum>& spectrum) {
  if (!options.anti_bias || !spectrum) return nullptr;
  return std::make_shared<InterpolationBias>(*spectrum, noise_variance(options, *spectrum),
                                             options.refine.interpolation, *options.prefilter);
}

}  // namespace

Sequence::Sequence(const TrackOptions& options, ImageView reference, const Roi& roi)
    : Sequence(options, reference, checked_roi(options, reference, roi)) {}

Sequence::Sequence(const TrackOptions& options, ImageView reference, Image roi)
    : reference_(reference),
      points_(make_grid(roi, options.step)),
      device_(choose_device(options.device, points_.size())),
      spectrum_(spectrum_of(reference, points_, on_gpu())),
      prefilter_(prefilter_of(options, spectrum_, on_gpu())),
      options_(with_known_bias(chosen(options, prefilter_, spectrum_, reference, roi, points_, on_gpu()),
                               spectrum_)),
      bias_(bias_of(options_, spectrum_)) {
  const Stopwatch watch;
  const bool whole = everywhere(roi);
  points_.alternatives = find_alternatives(options_, HostPixels(reference, on_gpu()).view(),
                                           whole ? ImageView{} : roi.view(), points_);
  backend_ = open(device_.device, prefilter_.for_backend(options_), prefilter_.view_of(reference), points_);
  if (const std::string note = backend_->note(); !note.empty()) device_.reason += " " + note;
  auto first = take_checked(reference);
  if (options_.reference_strategy == ReferenceStrategy::first) watch_focus(roi, whole);
  active_reference_ = backend_->set_reference(std::move(first), whole ? Image() : std::move(roi));
  reference_.data = nullptr;
  if (options_.camera)
    nodes_ = std::make_shared<const NodePositions>(
        corrected_nodes(points_.grid, *options_.camera, options_.threads));
  prepare_seconds_ = watch.seconds();
}

void Sequence::watch_focus(const Image& roi, bool whole) {
  const HostPixels pixels(reference_, on_gpu());
  const auto open_again = [this](const TrackOptions& options, const ImageView& image) {
    return open(device_.device, options, image, points_);
  };
  focus_ =
      std::make_unique<FocusMatch>(prefilter_.for_backend(options_), pixels.view(),
                                   whole ? Image() : copy_of(roi.view()), points_, spectrum_, open_again);
}

std::shared_ptr<const Frame> Sequence::take(ImageView current) const {
  if (current.size() != reference_.size() || current.type != reference_.type)
    throw UsageError("The current image must have the size and depth of the reference.");
  return take_checked(current);
}

std::shared_ptr<const Frame> Sequence::take_checked(ImageView image) const {
  check_pixels(image);
  const bool is_in_gpu = on_gpu() && is_on_gpu(image);
  if (is_in_gpu) wait_for_default_stream(image);
  auto frame = prefilter_.enabled() ? take_filtered(image, is_in_gpu) : backend_->take(image);
  if (focus_) frame->suspicious = is_in_gpu ? focus_->suspicious_in_gpu(image) : focus_->suspicious(image);
  return frame;
}

bool Sequence::restore(std::span<const std::byte> state) {
  return options_.reference_strategy == ReferenceStrategy::first && active_reference_->restore(state);
}

std::shared_ptr<const Frame> Sequence::take_filtered(ImageView image, bool is_in_gpu) const {
  const ImageView filtered = is_in_gpu ? prefilter_.on_gpu(image) : ImageView();
  return filtered.data ? backend_->take(filtered) : backend_->take(prefilter_(image));
}

std::unique_ptr<Result> Sequence::measure(std::shared_ptr<const Frame> current, const std::stop_token& stop,
                                          const NextFrame& next) {
  auto result = prefilter_.corrected(measure_subsets(std::move(current), stop, next));
  if (bias_) result = without_bias(std::move(result), bias_, options_);
  if (options_.global.enabled) result = with_global_step(std::move(result), options_);
  if (nodes_) result = with_camera(std::move(result), options_, nodes_);
  return result;
}

std::unique_ptr<Result> Sequence::measure_subsets(std::shared_ptr<const Frame> current,
                                                  const std::stop_token& stop, const NextFrame& next) {
  switch (options_.reference_strategy) {
    case ReferenceStrategy::first: {
      auto pixels = current->suspicious;
      return focus_->matched(active_reference_->measure(std::move(current), stop, next), std::move(pixels),
                             stop);
    }
    case ReferenceStrategy::previous:
      return measure_and_replace_reference(current, stop);
    case ReferenceStrategy::automatic:
      break;
  }
  auto result = measure_or_replace_reference(current, stop);
  const PointCounts counts = result->counts();
  if (found_share(counts) >= kLeastFollowed) {
    last_positions_ = result->positions();
    last_lost_ = counts.lost;
    last_frame_ = current;
  }
  if (auto direct = measure_directly(current, stop))
    result = with_direct(std::move(result), std::move(direct), options_);
  return result;
}

/// Against the original reference, where another has taken its place and it is still recognized; else null.
std::unique_ptr<Result> Sequence::measure_directly(const std::shared_ptr<const Frame>& current,
                                                   const std::stop_token& stop) {
  auto direct = std::exchange(direct_, nullptr);
  if (!direct && original_reference_) direct = original_reference_->measure(current, stop, {});
  if (!direct) return nullptr;
  const PointCounts counts = direct->counts();
  if (counts.measured >= kLeastFollowed * static_cast<double>(counts.measured + counts.lost)) return direct;
  original_reference_.reset();
  return nullptr;
}

/// Of the points that are likely to be in view and were not lost before the active reference.
double Sequence::found_share(const PointCounts& counts) const {
  const auto found = static_cast<double>(counts.measured);
  const auto lost = static_cast<double>(std::max<std::int64_t>(0, counts.lost - lost_before_));
  return found > 0 ? found / (found + lost) : 0;
}

/// A frame in which nearly nothing is found (the light was off) takes no place: else nothing is ever found
/// again.
std::unique_ptr<Result> Sequence::measure_and_replace_reference(const std::shared_ptr<const Frame>& current,
                                                                const std::stop_token& stop) {
  auto result = active_reference_->measure(current, stop, {});
  if (!active_reference_->surely_found()) {
    const PointCounts counts = result->counts();
    if (found_share(counts) < kLeastFollowed) return result;
    lost_before_ = counts.lost;
  }
  const Stopwatch watch;
  active_reference_ = backend_->replace_reference(current, *result->positions(), active_reference_.get());
  result->add({.prepare = watch.seconds()});
  return result;
}

/// Where too many points are lost, the last frame becomes the reference, if that helps.
std::unique_ptr<Result> Sequence::measure_or_replace_reference(const std::shared_ptr<const Frame>& current,
                                                               const std::stop_token& stop) {
  auto result = active_reference_->measure(current, stop, {});
  if (!last_frame_) return result;
  const PointCounts counts = result->counts();
  if (found_share(counts) >= kLeastFound) return result;
  const Stopwatch watch;
  auto before =
      std::exchange(active_reference_, backend_->replace_reference(last_frame_, *last_positions_, nullptr));
  result->add({.prepare = watch.seconds()});
  auto retried = active_reference_->measure(current, stop, {});
  if (retried->counts().measured > counts.measured) {
    std::swap(result, retried);
    lost_before_ = last_lost_;
    if (!is_original_replaced_) {
      is_original_replaced_ = true;
      original_reference_ = std::move(before);
      direct_ = std::move(retried);
      return result;
    }
  } else {
    active_reference_ = std::move(before);
  }
  result->add(retried->fetch().seconds);
  return result;
}

}  // namespace dic::track

#include "track/sequence.hpp"

#include <algorithm>
#include <cstring>
#include <dic/error.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "analysis/host_pixels.hpp"
#include "analysis/noise.hpp"
#include "analysis/ramps.hpp"
#include "analysis/self_similarity.hpp"
#include "analysis/sensor_noise.hpp"
#include "analysis/subset_choice.hpp"
#include "camera/correct_field.hpp"
#include "core/cuda_devices.hpp"
#include "core/device_name.hpp"
#include "track/order_choice.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

/// If a smaller share of the points in view is found, the active reference is replaced (strategy automatic).
constexpr double kLeastFound = 0.9;
/// Share of the points in view that must be found in a frame for it to become the reference.
constexpr double kLeastFollowed = 0.1;

bool everywhere(const Image& mask) {
  for (int y = 0; y < mask.height(); ++y)
    if (std::memchr(mask.row<std::uint8_t>(y), 0, mask.width())) return false;
  return true;
}

/// Leaves the strain to the last step if another step surely changes displacements, or if frames may be
/// measured twice.
StrainBy strain_by(const TrackOptions& options) {
  const bool is_changed = options.automatic_order || options.anti_bias || options.global.enabled ||
                          options.camera || options.reference_strategy == ReferenceStrategy::automatic;
  return is_changed ? StrainBy::last_step : StrainBy::backend;
}

std::unique_ptr<TrackingBackend> open(const std::string& device, const TrackOptions& options,
                                      const ImageView& reference, const PointNodes& points,
                                      const ReferenceAnalysis& analysis, core::ThreadPool& pool) {
  const auto open_one = [&](const TrackOptions& one, const ImageView& image, const ReferenceAnalysis& known) {
    const core::DeviceName name = core::parse_tracking_device(device);
    const MeasuredScene scene{points, known, image.size()};
    return name.backend == "cpu" ? open_cpu(one, scene, strain_by(options), pool)
                                 : open_cuda(one, image, scene, name.ordinals, pool);
  };
  return options.automatic_order ? with_both_orders(open_one, options, reference, analysis)
                                 : open_one(options, reference, analysis);
}

/// Throws UsageError if the members of a view, which nobody has checked yet, are inconsistent.
void check_pixels(ImageView image) {
  ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
}

/// Returns the ROI as a mask. Throws UsageError if a measurement with it is impossible.
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

/// The points in some rows of the grid. Throws UsageError if it has no such rows.
Points in_rows(const Points& all, const std::optional<GridRows>& rows) {
  if (!rows) return all;
  if (rows->first < 0 || rows->count < 1 || rows->count > all.grid().ny - rows->first)
    throw UsageError("The grid has " + std::to_string(all.grid().ny) + " rows, not " +
                     std::to_string(rows->count) + " from row " + std::to_string(rows->first) + " on.");
  Grid grid = all.grid();
  grid.y0 = grid.y(rows->first);
  grid.ny = rows->count;
  const auto first = grid.inside.begin() + std::int64_t{rows->first} * grid.nx;
  grid.inside = std::vector<std::uint8_t>(first, first + grid.nodes());
  return Points(std::move(grid));
}

/// The values of the points in some rows, taken from the values of all points.
std::vector<float> in_rows(std::vector<float> values, const Points& all,
                           const std::optional<GridRows>& rows) {
  if (!rows || values.empty()) return values;
  const auto first_node = all.grid().inside.begin() + std::int64_t{rows->first} * all.grid().nx;
  const auto before = std::count(all.grid().inside.begin(), first_node, 1);
  const auto count = std::count(first_node, first_node + std::int64_t{rows->count} * all.grid().nx, 1);
  return {values.begin() + before, values.begin() + before + count};
}

/// The nodes in some rows, as numbered there, of nodes of the whole grid, which has nx columns.
std::vector<std::int64_t> in_rows(std::vector<std::int64_t> nodes, int nx,
                                  const std::optional<GridRows>& rows) {
  if (!rows) return nodes;
  const std::int64_t first = std::int64_t{rows->first} * nx, end = first + std::int64_t{rows->count} * nx;
  std::erase_if(nodes, [&](std::int64_t node) { return node < first || node >= end; });
  for (std::int64_t& node : nodes) node -= first;
  return nodes;
}

std::optional<analysis::PowerSpectrum> spectrum_of(ImageView reference, const Points& points, bool on_gpu) {
  return analysis::PowerSpectrum::of(analysis::HostPixels(reference, on_gpu).view(), points);
}

/// Variance of the noise of an image, grey levels^2, before any frame is measured.
double noise_variance(const TrackOptions& options, const analysis::PowerSpectrum& spectrum) {
  return options.noise ? *options.noise * *options.noise : spectrum.noise_variance();
}

analysis::Prefilter prefilter_of(TrackOptions options, const std::optional<analysis::PowerSpectrum>& spectrum,
                                 bool on_gpu, core::ThreadPool& pool) {
  if (!options.prefilter && spectrum)
    options.prefilter =
        analysis::best_prefilter(*spectrum, noise_variance(options, *spectrum), options.refine.interpolation);
  return analysis::Prefilter(options, spectrum, on_gpu, pool);
}

/// The original reference and the points to be measured.
struct OriginalReference {
  ImageView image, roi;
  const Points& points;
  bool on_gpu;  ///< the image may be in the memory of a GPU
};

/// The options with every choice made that follows from the reference.
TrackOptions chosen(TrackOptions options, const analysis::Prefilter& prefilter,
                    const std::optional<analysis::PowerSpectrum>& spectrum,
                    const OriginalReference& reference, core::ThreadPool& pool) {
  options.prefilter = prefilter.sigma();
  if (!options.sigma_target) return options;
  if (!spectrum)
    throw UsageError("The image is too small to choose a subset for a demanded sigma: choose --subset.");
  const double noise = noise_variance(options, *spectrum);
  const analysis::FilteredEnergies energies =
      analysis::energies_after(*spectrum, noise, options.refine.interpolation, prefilter.sigma());
  const analysis::HostPixels pixels(reference.image, reference.on_gpu);
  const Image filtered = prefilter.enabled() ? prefilter(pixels.view()) : Image();
  refine::SubsetSigmas sigmas(options.refine, pool, prefilter.enabled() ? filtered.view() : pixels.view(),
                              reference.roi);
  options.refine.subset = analysis::smallest_subset(sigmas, reference.points, energies.noise_by_matrix(noise),
                                                    *options.sigma_target,
                                                    std::min(reference.image.width, reference.image.height));
  return options;
}

/// The options with the errors that sigma includes: bias that is not subtracted, and edges that no spline can
/// follow.
TrackOptions with_known_bias(TrackOptions options, const std::optional<analysis::PowerSpectrum>& spectrum) {
  if (!spectrum) return options;
  const double noise = noise_variance(options, *spectrum);
  RefineOptions& refine = options.refine;
  const analysis::SensorNoise sensor = analysis::sensor_noise(*spectrum);
  refine.row_jitter = sensor.row_jitter;
  refine.column_jitter = sensor.column_jitter;
  if (*options.prefilter == 0) {
    refine.edge_gradient = analysis::sharp_edge_gradient(*spectrum, noise, refine.interpolation);
    refine.column_pattern = sensor.column_pattern;
    refine.row_pattern = sensor.row_pattern;
    refine.below_mosaic = sensor.below_mosaic;
  }
  if (options.anti_bias) return options;
  // The outline of a body is sharper than the texture of its subsets: the median tile does not show it.
  const analysis::PowerSpectrum typical = spectrum->typical();
  const auto bias = analysis::largest_bias(typical, noise_variance(options, typical), refine.interpolation,
                                           *options.prefilter);
  refine.interpolation_bias_u = bias[0];
  refine.interpolation_bias_v = bias[1];
  return options;
}

/// The options with the noise of an image of two values: all of its residual is at the edges, where it
/// displaces most. The factor was measured with subsets of 21 to 49 px and blobs of 1.7 to 2.5 px.
TrackOptions with_noise_of_edges(TrackOptions options, const analysis::Conditioning& conditioning) {
  constexpr double at_edges = 2.2;
  if (conditioning.two_valued()) options.refine.smooth_noise_factor *= at_edges;
  return options;
}

std::shared_ptr<const analysis::InterpolationBias> bias_of(
    const TrackOptions& options, const std::optional<analysis::PowerSpectrum>& spectrum) {
  if (!options.anti_bias || !spectrum) return nullptr;
  return std::make_shared<analysis::InterpolationBias>(*spectrum, noise_variance(options, *spectrum),
                                                       options.refine.interpolation, *options.prefilter);
}

}  // namespace

Sequence::Sequence(const TrackOptions& options, ImageView reference, const Roi& roi)
    : Sequence(options, reference, checked_roi(options, reference, roi), roi.points) {}

Sequence::Sequence(const TrackOptions& options, ImageView reference, Image roi,
                   const std::vector<Roi::Vertex>& points)
    : Sequence(options, reference, std::move(roi),
               Points(grid_around(make_grid(roi, options.step), points))) {}

Sequence::Sequence(const TrackOptions& options, ImageView reference, Image&& roi, const Points& all)
    : pool_(options.threads),
      device_(choose_device(options, all.size())),
      conditioning_(analysis::HostPixels(reference, on_gpu()).view(), options.noise.has_value(), pool_),
      corrected_reference_(
          conditioning_.needed() ? conditioning_(analysis::HostPixels(reference, on_gpu()).view()) : nullptr),
      reference_(corrected_reference_ ? corrected_reference_->view() : reference),
      spectrum_(spectrum_of(reference_, all, on_gpu())),
      prefilter_(prefilter_of(options, spectrum_, on_gpu(), pool_)),
      options_(with_noise_of_edges(with_known_bias(chosen(options, prefilter_, spectrum_,
                                                          {reference_, roi.view(), all, on_gpu()}, pool_),
                                                   spectrum_),
                                   conditioning_)),
      bias_(bias_of(options_, spectrum_)),
      points_(in_rows(all, options.rows)),
      analysis_(analyse(std::move(roi), all)) {
  const Stopwatch watch;
  backend_ = open(device_.device, prefilter_.for_backend(options_), prefilter_.view_of(reference_),
                  *points_.nodes, analysis_, pool_);
  if (const std::string note = backend_->note(); !note.empty()) device_.reason += " " + note;
  auto first = take_corrected(reference_, on_gpu() && core::is_on_gpu(reference_));
  if (options_.reference_strategy == ReferenceStrategy::first) watch_focus();
  active_reference_ = backend_->make_reference(std::move(first), *backend_->place(points_), nullptr);
  reference_.data = nullptr;
  corrected_reference_ = nullptr;
  if (options_.camera)
    nodes_ = std::make_shared<const NodePositions>(
        camera::corrected_nodes(points_.grid(), *options_.camera, pool_));
  prepare_seconds_ += watch.seconds();
}

/// Analyses the reference. all: the points of the whole grid.
ReferenceAnalysis Sequence::analyse(Image roi, const Points& all) {
  const Stopwatch watch;
  ReferenceAnalysis out;
  if (!everywhere(roi)) out.roi = std::move(roi);
  out.noise_patches = analysis::spread_noise_patches(reference_.size(), all.x, all.y);
  const analysis::HostPixels pixels(reference_, on_gpu());
  out.ramps = in_rows(analysis::find_ramps(pixels.view(), all, options_.refine.subset, pool_), all.grid().nx,
                      options_.rows);
  analysis::Repeats repeats = analysis::find_repeats(
      options_, pixels.view(), out.roi.empty() ? ImageView{} : out.roi.view(), all, pool_);
  out.alternatives = in_rows(std::move(repeats.alternatives), all, options_.rows);
  out.largest_motion = repeats.largest_motion;
  prepare_seconds_ = watch.seconds();
  return out;
}

void Sequence::watch_focus() {
  const analysis::HostPixels pixels(reference_, on_gpu());
  const auto open_again = [this](const TrackOptions& options, const ImageView& image,
                                 const ReferenceAnalysis& analysis) {
    return open(device_.device, options, image, *points_.nodes, analysis, pool_);
  };
  focus_ = std::make_unique<FocusMatch>(prefilter_.for_backend(options_), pixels.view(), points_, analysis_,
                                        spectrum_, open_again, pool_);
}

std::shared_ptr<const Frame> Sequence::take(ImageView current) const {
  if (current.size() != reference_.size() || current.type != reference_.type)
    throw UsageError("The current image must have the size and depth of the reference.");
  return take_checked(current);
}

std::shared_ptr<const Frame> Sequence::take_checked(ImageView image) const {
  check_pixels(image);
  const bool is_in_gpu = on_gpu() && core::is_on_gpu(image);
  if (is_in_gpu) analysis::wait_for_default_stream(image);
  if (!conditioning_.needed()) return take_corrected(image, is_in_gpu);
  const analysis::HostPixels pixels(image, is_in_gpu);
  auto frame = prefilter_.enabled() ? nullptr : backend_->take_and_correct(pixels.view(), conditioning_);
  if (!frame) return take_corrected(*conditioning_(pixels.view()), false);
  if (focus_) frame->suspicious = focus_->suspicious(frame->corrected);
  return frame;
}

/// Takes an image after the conditioning.
std::shared_ptr<const Frame> Sequence::take_corrected(ImageView image, bool is_in_gpu) const {
  auto frame = prefilter_.enabled() ? take_filtered(image, is_in_gpu) : backend_->take(image);
  if (focus_) frame->suspicious = is_in_gpu ? focus_->suspicious_in_gpu(image) : focus_->suspicious(image);
  return frame;
}

bool Sequence::restore(std::span<const std::byte> state, const TrackStream::ReadFrame& read) {
  if (options_.reference_strategy == ReferenceStrategy::first) return active_reference_->restore(state);
  return read && restore_strategy(state, read);
}

namespace {

/// Begin of a state. The positions in the active reference and in the last frame follow, zeros if there are
/// none.
struct StateHead {
  std::int64_t measured = 0, active = -1, last = -1;
  std::int64_t last_lost = 0, lost_before = 0;
  std::int64_t is_original_replaced = 0, has_original = 0;

  /// True if a sequence of this many points can have written this: a damaged file has other numbers.
  bool is_possible(std::int64_t points) const {
    const auto between = [](std::int64_t least, std::int64_t value, std::int64_t most) {
      return value >= least && value <= most;
    };
    constexpr std::int64_t kMostFrames = std::numeric_limits<std::int32_t>::max();
    return between(1, measured, kMostFrames) && between(-1, active, measured - 1) &&
           between(-1, last, measured - 1) && between(0, last_lost, points) &&
           between(0, lost_before, points) && between(0, is_original_replaced, 1) &&
           between(0, has_original, active >= 0 ? 1 : 0);
  }
};

}  // namespace

/// The state after this measurement. It always has the same size, or is empty if positions cannot be saved.
std::vector<std::byte> Sequence::state_after(Measurement& measured) const {
  const std::size_t bytes = measured.positions()->save().size();
  if (bytes == 0) return {};
  const StateHead head{measured_,
                       active_.frame,
                       last_.frame,
                       last_lost_,
                       lost_before_,
                       is_original_replaced_,
                       original_reference_ != nullptr};
  std::vector<std::byte> state(sizeof head);
  std::memcpy(state.data(), &head, sizeof head);
  for (const Located& located : {active_, last_}) {
    const std::vector<std::byte> saved =
        located.positions ? located.positions->save() : std::vector<std::byte>(bytes);
    state.insert(state.end(), saved.begin(), saved.end());
  }
  return state;
}

bool Sequence::restore_strategy(std::span<const std::byte> state, const TrackStream::ReadFrame& read) {
  StateHead head;
  if (state.size() < sizeof head) return false;
  std::memcpy(&head, state.data(), sizeof head);
  if (!head.is_possible(std::ssize(points_.nodes->node_of))) return false;
  state = state.subspan(sizeof head);
  const auto located = [&](std::int64_t frame, std::span<const std::byte> bytes) {
    return Located{frame, frame >= 0 ? backend_->load_positions(bytes) : nullptr};
  };
  const Located active = located(head.active, state.first(state.size() / 2)),
                last = located(head.last, state.subspan(state.size() / 2));
  if ((head.active >= 0 && !active.positions) || (head.last >= 0 && !last.positions)) return false;
  if (active.positions) {
    auto replaced = backend_->make_reference(take(read(active.frame)), *active.positions, nullptr);
    if (head.has_original != 0) original_reference_ = std::move(active_reference_);
    active_reference_ = std::move(replaced);
  }
  if (last.positions) last_frame_ = take(read(last.frame));
  active_ = active;
  last_ = last;
  measured_ = head.measured;
  last_lost_ = head.last_lost;
  lost_before_ = head.lost_before;
  is_original_replaced_ = head.is_original_replaced != 0;
  return true;
}

void Sequence::limit_effort(std::span<const Effort> efforts) {
  std::vector<Effort> of_points;
  for (const std::int64_t node : points_.nodes->node_of)
    of_points.push_back(efforts[static_cast<std::size_t>(node)]);
  active_reference_->limit_effort(of_points);
}

std::shared_ptr<const Frame> Sequence::take_filtered(ImageView image, bool is_in_gpu) const {
  const ImageView filtered = is_in_gpu ? prefilter_.on_gpu(image) : ImageView();
  return filtered.data ? backend_->take(filtered) : backend_->take(prefilter_(image));
}

std::unique_ptr<PendingFrame> Sequence::measure(std::shared_ptr<const Frame> current,
                                                const std::stop_token& stop, const NextFrame& next) {
  std::vector<FieldStep> steps;
  auto measured = measure_subsets(std::move(current), stop, next, steps);
  if (!analysis_.ramps.empty()) steps.push_back(give_up_nodes(analysis_.ramps, Status::flat));
  ++measured_;
  if (options_.keep_state && options_.reference_strategy != ReferenceStrategy::first)
    measured->set_state(state_after(*measured));
  const double noise_gain = prefilter_.noise_gain() * conditioning_.gain();
  if (noise_gain != 1) steps.push_back(restore_noise(noise_gain));
  if (bias_) steps.push_back(subtract_bias(bias_, options_, pool_));
  if (checks_scatter_ && !options_.noise) steps.push_back(check_scatter(options_));
  if (options_.global.enabled) steps.push_back(fit_globally(options_, pool_));
  if (nodes_) steps.push_back(correct_by_camera(nodes_, options_, pool_));
  return std::make_unique<PendingFrame>(std::move(measured), std::move(steps), options_, pool_);
}

std::unique_ptr<Measurement> Sequence::measure_subsets(std::shared_ptr<const Frame> current,
                                                       const std::stop_token& stop, const NextFrame& next,
                                                       std::vector<FieldStep>& steps) {
  switch (options_.reference_strategy) {
    case ReferenceStrategy::first:
      if (current->suspicious) steps.push_back(focus_->refocus(current->suspicious, stop));
      return active_reference_->measure(std::move(current), stop, next);
    case ReferenceStrategy::previous:
      return measure_and_replace_reference(current, stop);
    case ReferenceStrategy::automatic:
      break;
  }
  auto measured = measure_or_replace_reference(current, stop);
  const PointCounts counts = measured->counts();
  if (found_share(counts) >= kLeastFollowed) {
    last_ = {measured_, measured->positions()};
    last_lost_ = counts.lost;
    last_frame_ = current;
  }
  if (auto direct = measure_directly(current, stop)) steps.push_back(prefer_direct(std::move(direct)));
  return measured;
}

/// Measures a frame against the original reference if another image has replaced it and it is still
/// recognized; else returns null.
std::unique_ptr<Measurement> Sequence::measure_directly(const std::shared_ptr<const Frame>& current,
                                                        const std::stop_token& stop) {
  auto direct = std::exchange(direct_, nullptr);
  if (!direct && original_reference_) direct = original_reference_->measure(current, stop, {});
  if (!direct) return nullptr;
  const PointCounts counts = direct->counts();
  if (counts.measured >= kLeastFollowed * static_cast<double>(counts.measured + counts.lost)) return direct;
  original_reference_.reset();
  return nullptr;
}

/// Share of the points that were found, among those that are likely to be in view and were not lost before
/// the active reference.
double Sequence::found_share(const PointCounts& counts) const {
  const auto found = static_cast<double>(counts.measured);
  const auto lost = static_cast<double>(std::max<std::int64_t>(0, counts.lost - lost_before_));
  return found > 0 ? found / (found + lost) : 0;
}

/// Measures a frame, which then becomes the reference. A frame in which nearly nothing is found (the light
/// was off) does not: nothing would be found ever after.
std::unique_ptr<Measurement> Sequence::measure_and_replace_reference(
    const std::shared_ptr<const Frame>& current, const std::stop_token& stop) {
  auto result = active_reference_->measure(current, stop, {});
  if (!active_reference_->surely_found()) {
    const PointCounts counts = result->counts();
    if (found_share(counts) < kLeastFollowed) return result;
    lost_before_ = counts.lost;
  }
  const Stopwatch watch;
  active_ = {measured_, result->positions()};
  active_reference_ = backend_->make_reference(current, *active_.positions, active_reference_.get());
  result->add({.prepare = watch.seconds()});
  return result;
}

/// Measures a frame. If too many points are lost, the last frame becomes the reference, if that helps.
std::unique_ptr<Measurement> Sequence::measure_or_replace_reference(
    const std::shared_ptr<const Frame>& current, const std::stop_token& stop) {
  auto result = active_reference_->measure(current, stop, {});
  if (!last_frame_) return result;
  const PointCounts counts = result->counts();
  if (found_share(counts) >= kLeastFound) return result;
  const Stopwatch watch;
  auto before =
      std::exchange(active_reference_, backend_->make_reference(last_frame_, *last_.positions, nullptr));
  result->add({.prepare = watch.seconds()});
  auto retried = active_reference_->measure(current, stop, {});
  if (retried->counts().measured > counts.measured) {
    std::swap(result, retried);
    active_ = last_;
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
  result->add(retried->fetch().result.seconds);
  return result;
}

}  // namespace dic::track

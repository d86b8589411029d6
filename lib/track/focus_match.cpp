#include "track/focus_match.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/gaussian.hpp>
#include <numbers>
#include <utility>

#include "analysis/interpolation_bias.hpp"
#include "analysis/prefilter.hpp"
#include "core/cuda_devices.hpp"

namespace dic::track {

namespace {

/// Sharpness of a frame over that of the reference within which both count as equally sharp: the same texture
/// at other places differs by a few percent.
constexpr double kSameSharpness = 0.85;
/// Variance of the residuals over that of the noise of both images, above which a second look is worthwhile.
constexpr double kLeastMisfit = 1.5;
/// Blurs that are tried, px.
constexpr std::array kBlurs = {0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0};
/// Smallest blur that changes enough to be worth a second measurement, px.
constexpr double kLeastBlur = 0.4;
/// Factor by which a blur must reduce 1 - zncc to explain it.
constexpr double kExplains = 0.6;
constexpr int kSamples = 32;        ///< number of subsets that are compared
constexpr int kLargestRadius = 16;  ///< largest radius of these subsets, px
constexpr int kMargin = 12;         ///< margin around these subsets for the low-pass, px
/// Width of the border, in units of the blur, into which a low-pass carries what lies outside of the image.
constexpr double kUnknownBorder = 1.5;
constexpr double kSameBlur = 0.05;    ///< px: for a smaller change of the blur the reference is kept
constexpr double kFewerPoints = 0.9;  ///< share of the points that must be found again

/// Energy of the gradients and variance of a patch, both summed over its inner pixels.
struct PatchEnergy {
  double gradient = 0, grey = 0;
  int pixels = 0;
};

template <typename T>
PatchEnergy energy_at(ImageView image, const analysis::NoisePatch& patch) {
  constexpr int reach = analysis::NoisePatch::kReach - 1;
  PatchEnergy energy;
  double sum = 0, squares = 0;
  for (int y = patch.y - reach; y < patch.y + reach; ++y) {
    const T *above = image.row<T>(y - 1), *row = image.row<T>(y), *below = image.row<T>(y + 1);
    for (int x = patch.x - reach; x < patch.x + reach; ++x) {
      const double dx = 0.5 * (double(row[x + 1]) - double(row[x - 1]));
      const double dy = 0.5 * (double(below[x]) - double(above[x])), grey = row[x];
      energy.gradient += dx * dx + dy * dy;
      sum += grey, squares += grey * grey;
    }
  }
  energy.pixels = 4 * reach * reach;
  energy.grey = squares - sum * sum / energy.pixels;
  return energy;
}

/// Keys' cubic convolution: it blurs much less than linear interpolation.
std::array<double, 4> cubic_weights(double t) {
  return {((-0.5 * t + 1) * t - 0.5) * t, (1.5 * t - 2.5) * t * t + 1, ((-1.5 * t + 2) * t + 0.5) * t,
          (0.5 * t - 0.5) * t * t};
}

double value_at(ImageView image, double x, double y) {
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const auto along_x = cubic_weights(x - i), along_y = cubic_weights(y - j);
  double sum = 0;
  visit_scalar(image.type, [&](auto element) {
    for (int b = 0; b < 4; ++b) {
      const auto* row = image.row<decltype(element)>(j + b - 1) + i - 1;
      double line = 0;
      for (int a = 0; a < 4; ++a) line += along_x[a] * static_cast<double>(row[a]);
      sum += along_y[b] * line;
    }
  });
  return sum;
}

/// A square of grey values; sides are odd.
class Patch {
 public:
  explicit Patch(int radius) : radius_(radius), values_(static_cast<std::size_t>(side()) * side()) {}
  int radius() const { return radius_; }
  int side() const { return 2 * radius_ + 1; }
  double& at(int dx, int dy) { return values_[(dy + radius_) * side() + dx + radius_]; }
  double at(int dx, int dy) const { return values_[(dy + radius_) * side() + dx + radius_]; }

 private:
  int radius_;
  std::vector<double> values_;
};

/// The inner part of a patch, of this radius, after a low-pass that is cut off at the edges of the patch.
Patch blurred(const Patch& patch, double sigma, int radius) {
  std::vector<double> taps = gaussian_taps(sigma);
  const int reach = std::min(static_cast<int>(taps.size()) - 1, patch.radius() - radius);
  Patch rows(patch.radius()), out(radius);
  for (int y = -patch.radius(); y <= patch.radius(); ++y)
    for (int x = -radius; x <= radius; ++x) {
      double sum = taps[0] * patch.at(x, y);
      for (int k = 1; k <= reach; ++k) sum += taps[k] * (patch.at(x - k, y) + patch.at(x + k, y));
      rows.at(x, y) = sum;
    }
  for (int y = -radius; y <= radius; ++y)
    for (int x = -radius; x <= radius; ++x) {
      double sum = taps[0] * rows.at(x, y);
      for (int k = 1; k <= reach; ++k) sum += taps[k] * (rows.at(x, y - k) + rows.at(x, y + k));
      out.at(x, y) = sum;
    }
  return out;
}

/// 1 - zncc of the inner parts of two patches.
double difference_of(const Patch& a, const Patch& b, int radius) {
  double n = 0, sa = 0, sb = 0, aa = 0, ab = 0, bb = 0;
  for (int y = -radius; y <= radius; ++y)
    for (int x = -radius; x <= radius; ++x) {
      const double p = a.at(x, y), q = b.at(x, y);
      n += 1, sa += p, sb += q, aa += p * p, ab += p * q, bb += q * q;
    }
  const double va = aa - sa * sa / n, vb = bb - sb * sb / n;
  return va > 0 && vb > 0 ? 1 - (ab - sa * sb / n) / std::sqrt(va * vb) : 1;
}

/// The same material in both images, in the coordinates of the reference.
struct Pair {
  Patch reference, current;
  double stretch = 1;  ///< square root of the ratio of areas, current over reference
};

std::optional<Pair> pair_at(ImageView reference, ImageView current, const Field& field, int i, int j,
                            int radius) {
  const Grid& grid = field.grid();
  const std::int64_t at = std::int64_t{j} * grid.nx + i;
  for (const std::int64_t node : {at, at - 1, at + 1, at - grid.nx, at + grid.nx})
    if (field.status[node] != Status::ok) return std::nullopt;
  const double apart = 2.0 * grid.step;
  const double ux = (field.u[at + 1] - field.u[at - 1]) / apart,
               vx = (field.v[at + 1] - field.v[at - 1]) / apart;
  const double uy = (field.u[at + grid.nx] - field.u[at - grid.nx]) / apart;
  const double vy = (field.v[at + grid.nx] - field.v[at - grid.nx]) / apart;
  const int cx = grid.x(i), cy = grid.y(j), full = radius + kMargin;
  const auto inside = [&](ImageView image, double x, double y) {
    return x >= 1 && y >= 1 && x < image.width - 2 && y < image.height - 2;
  };
  Pair pair{Patch(full), Patch(full), std::sqrt(std::abs((1 + ux) * (1 + vy) - uy * vx))};
  for (int dy = -full; dy <= full; ++dy)
    for (int dx = -full; dx <= full; ++dx) {
      const double x = cx + dx + field.u[at] + ux * dx + uy * dy,
                   y = cy + dy + field.v[at] + vx * dx + vy * dy;
      if (!inside(reference, cx + dx, cy + dy) || !inside(current, x, y)) return std::nullopt;
      pair.reference.at(dx, dy) = value_at(reference, cx + dx, cy + dy);
      pair.current.at(dx, dy) = value_at(current, x, y);
    }
  return pair;
}

std::vector<Pair> sample_pairs(ImageView reference, ImageView current, const Field& field, int radius) {
  const Grid& grid = field.grid();
  std::vector<Pair> pairs;
  if (grid.nx < 3 || grid.ny < 3) return pairs;
  for (int k = 0; k < 4 * kSamples && std::ssize(pairs) < kSamples; ++k) {
    // Multiples of the golden ratio are spread evenly along rows and columns.
    const double share = std::fmod((k + 0.5) * std::numbers::phi, 1.0);
    const auto node = static_cast<std::int64_t>(share * static_cast<double>(grid.nodes()));
    const int i = static_cast<int>(node % grid.nx), j = static_cast<int>(node / grid.nx);
    if (i < 1 || j < 1 || i + 1 >= grid.nx || j + 1 >= grid.ny) continue;
    if (auto pair = pair_at(reference, current, field, i, j, radius)) pairs.push_back(std::move(*pair));
  }
  return pairs;
}

/// The minimum of a function whose values at kBlurs are known, by a parabola through three of them.
double least_between(const std::array<double, kBlurs.size()>& costs, std::size_t at) {
  if (at == 0 || at + 1 == costs.size()) return kBlurs[at];
  const double a = kBlurs[at - 1] - kBlurs[at], b = kBlurs[at + 1] - kBlurs[at];
  const double p = (costs[at - 1] - costs[at]) / a, q = (costs[at + 1] - costs[at]) / b;
  const double bend = (q - p) / (b - a);
  return bend > 0 ? kBlurs[at] - 0.5 * (p - a * bend) / bend : kBlurs[at];
}

/// A ROI without the pixels along the border of the image. roi: empty = everywhere.
Image without_border(const Image& roi, Size size, int border) {
  Image inner(size, ScalarType::u8);
  for (int y = border; y < size.height - border; ++y) {
    std::uint8_t* const row = inner.row<std::uint8_t>(y);
    if (roi.empty())
      std::fill(row + border, row + size.width - border, std::uint8_t{255});
    else
      std::copy_n(roi.row<std::uint8_t>(y) + border, std::max(0, size.width - 2 * border), row + border);
  }
  return inner;
}

double blur_of_pairs(const std::vector<Pair>& pairs, int radius, bool of_reference) {
  std::array<double, kBlurs.size()> costs{};
  for (std::size_t k = 0; k < kBlurs.size(); ++k)
    for (const Pair& pair : pairs) {
      const Patch& sharp = of_reference ? pair.reference : pair.current;
      const Patch& other = of_reference ? pair.current : pair.reference;
      costs[k] += difference_of(blurred(sharp, kBlurs[k], radius), other, radius);
    }
  const auto least = static_cast<std::size_t>(std::ranges::min_element(costs) - costs.begin());
  if (!(costs[least] < kExplains * costs[0])) return 0;
  return least_between(costs, least);
}

}  // namespace

double sharpness(ImageView image, const std::vector<analysis::NoisePatch>& patches, core::ThreadPool& pool) {
  std::vector<PatchEnergy> energies(patches.size());
  visit_scalar(image.type, [&](auto element) {
    pool.parallel_for(std::ssize(patches), analysis::kPatchesAtOnce,
                      [&](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t k = begin; k < end; ++k)
                          energies[k] = energy_at<decltype(element)>(image, patches[k]);
                      });
  });
  PatchEnergy all;
  for (const PatchEnergy& here : energies) {
    all.gradient += here.gradient;
    all.grey += here.grey;
    all.pixels += here.pixels;
  }
  const double noise = std::pow(analysis::image_noise(image, patches, pool), 2) * all.pixels;
  // The two central differences of white noise have half its variance each.
  const double gradient = all.gradient - noise, grey = all.grey - noise;
  return gradient > 0 && grey > 0 ? gradient / grey : 0;
}

double blur_between(ImageView reference, ImageView current, const Field& field, int subset) {
  const int radius = std::min(subset / 2, kLargestRadius);
  const std::vector<Pair> pairs = sample_pairs(reference, current, field, radius);
  if (pairs.empty()) return 0;
  if (const double blur = blur_of_pairs(pairs, radius, true); blur >= kLeastBlur) return blur;
  double stretch = 0;
  for (const Pair& pair : pairs) stretch += pair.stretch / static_cast<double>(pairs.size());
  const double blur = stretch * blur_of_pairs(pairs, radius, false);
  return blur >= kLeastBlur ? -blur : 0;
}

FocusMatch::FocusMatch(TrackOptions options, ImageView reference, const Points& points,
                       const ReferenceAnalysis& analysis,
                       const std::optional<analysis::PowerSpectrum>& spectrum, BackendFactory open,
                       core::ThreadPool& pool)
    : options_(std::move(options)),
      reference_(copy_of(reference)),
      points_(points),
      analysis_(analysis),
      spectrum_(spectrum),
      open_(std::move(open)),
      patches_(analysis.noise_patches),
      gpu_patches_(std::make_unique<analysis::GpuPatches>(patches_)),
      sharpness_(sharpness(reference, patches_, pool)),
      pool_(pool) {}

bool FocusMatch::is_suspicious(double sharpness) const {
  const double ratio = sharpness / sharpness_;
  const bool is_same = ratio > kSameSharpness && ratio * kSameSharpness < 1;
  return !is_same && ratio > 0;
}

std::shared_ptr<const Image> FocusMatch::suspicious(ImageView current) const {
  if (!(sharpness_ > 0) || !is_suspicious(sharpness(current, patches_, pool_))) return nullptr;
  return std::make_shared<const Image>(copy_of(current));
}

std::shared_ptr<const Image> FocusMatch::suspicious_in_gpu(ImageView current) const {
  if (!(sharpness_ > 0)) return nullptr;
  const Image patches = gpu_patches_->copy(current);
  if (!is_suspicious(sharpness(patches.view(), gpu_patches_->in_copy(), pool_))) return nullptr;
  return std::make_shared<const Image>(core::copy_from_gpu(current));
}

FieldStep FocusMatch::refocus(std::shared_ptr<const Image> current, const std::stop_token& stop) {
  return [this, current = std::move(current), stop](MeasuredFrame& frame) {
    frame = measured_again(std::move(frame), *current, stop);
  };
}

bool FocusMatch::has_misfit(const FrameResult& result, const Image& current) const {
  if (options_.noise) return true;  // result.noise is what was given
  const double reference = analysis::image_noise(reference_.view(), patches_, pool_);
  const double other = analysis::image_noise(current.view(), patches_, pool_);
  double left = 1;
  if (const double prefilter = options_.prefilter.value_or(0); prefilter > 0) {
    const std::vector<double> taps = gaussian_taps(prefilter);
    left = taps[0] * taps[0];
    for (std::size_t k = 1; k < taps.size(); ++k) left += 2 * taps[k] * taps[k];
  }
  const double noise = 0.5 * (reference * reference + other * other) * left * left;
  return result.noise * result.noise > kLeastMisfit * noise;
}

ActiveReference& FocusMatch::reference_blurred_by(double blur) {
  if (active_ && std::abs(blur - blur_) < kSameBlur) return *active_;
  const double prefilter = options_.prefilter.value_or(0), after = std::hypot(prefilter, blur);
  TrackOptions& options = matched_ = options_;
  options.refine.matching = blur;
  options.refine.edge_gradient = 0;  // no edge is sharp after a low-pass
  if (spectrum_) {
    const double noise = spectrum_->noise_variance();
    const analysis::FilteredEnergies e =
        analysis::energies_after(*spectrum_, noise, options.refine.interpolation, after);
    if (e.gradient > 0 && e.gradient_twice > 0)
      options.refine.matching_effect = e.gradient_twice / e.gradient;
    if (!options.anti_bias) {
      const analysis::PowerSpectrum typical = spectrum_->typical();  // see with_known_bias() of Sequence
      const auto bias =
          analysis::largest_bias(typical, typical.noise_variance(), options.refine.interpolation, after);
      options.refine.interpolation_bias_u = bias[0];
      options.refine.interpolation_bias_v = bias[1];
    }
  }
  const Image reference = analysis::low_pass(reference_.view(), blur > 0 ? after : prefilter, pool_);
  active_.reset();
  backend_.reset();
  const int border = static_cast<int>(std::ceil(kUnknownBorder * std::abs(blur)));
  blurred_analysis_ = {without_border(analysis_.roi, reference_.size(), border), analysis_.alternatives,
                       analysis_.largest_motion, analysis_.ramps, analysis_.noise_patches};
  backend_ = open_(options, reference.view(), blurred_analysis_);
  active_ = backend_->make_reference(backend_->take(reference.view()), *backend_->place(points_), nullptr);
  blur_ = blur;
  return *active_;
}

/// Ratio of the noise of the images to the noise that the residuals suggest: one image was blurred, so that
/// residuals contain less than the noise of two images.
double FocusMatch::noise_factor() const {
  const NoiseModel model = analysis::noise_model(matched_, {}, {});
  double gain = 0;
  for (const double at : model.gains.gain) gain += at / std::size(model.gains.gain);
  gain *= gain;
  return std::sqrt((1 + gain) / (model.of_reference.left + model.of_current.left * gain));
}

MeasuredFrame FocusMatch::measured_again(MeasuredFrame frame, const Image& current,
                                         const std::stop_token& stop) {
  FrameResult& result = frame.result;
  const auto found = [](const FrameResult& r) { return std::ranges::count(r.field.status, Status::ok); };
  if (!has_misfit(result, current)) return frame;
  const double blur = blur_between(reference_.view(), current.view(), result.field, options_.refine.subset);
  if (blur == 0) return frame;
  ActiveReference& active = reference_blurred_by(blur);
  const double prefilter = options_.prefilter.value_or(0);
  const Image filtered =
      analysis::low_pass(current.view(), blur < 0 ? std::hypot(prefilter, blur) : prefilter, pool_);
  MeasuredFrame refocused = active.measure(backend_->take(filtered.view()), stop, {})->fetch();
  FrameResult& again = refocused.result;
  const auto before = static_cast<double>(found(result));
  if (static_cast<double>(found(again)) < kFewerPoints * before) return frame;
  for (std::int64_t k = 0; k < std::ssize(again.field.status); ++k) {
    const bool masked_before = result.field.status[k] == Status::masked;
    if (masked_before)
      clear_node(again.field, k, Status::masked);
    else if (again.field.status[k] == Status::masked)
      again.field.status[k] = Status::out_of_image;
  }
  if (!options_.noise) again.noise *= noise_factor();
  again.state = std::move(result.state);
  again.seconds += result.seconds;
  again.spans.insert(again.spans.begin(), result.spans.begin(), result.spans.end());
  return refocused;
}

}  // namespace dic::track

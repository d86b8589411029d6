#include "track/image_lag.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/uncertainty.hpp>
#include <limits>
#include <utility>

namespace dic::track {
namespace {

/// Least noise, grey levels of whole numbers, that makes cells of a moving specimen differ.
constexpr double kLeastNoise = 0.5;
/// Share of a subset that may be skipped although the motion since then is unknown, or large.
constexpr double kUnknownShare = 0.02;
constexpr double kMostSkipped = 0.4;  ///< share of a subset that may be skipped
constexpr double kLargestKnown = 1;   ///< motion, px, up to which the effect of skipped cells is known
constexpr int kNear = 64;             ///< px, distance up to which updated points tell the motion
constexpr std::array<std::array<int, 2>, 8> kDirections = {
    {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}};
constexpr double kLeastShare = 0.02;  ///< share of the frame before that counts
constexpr double kSignificant = 5;    ///< least correlation of the noise, in its standard deviations
constexpr double kMostTexture = 0.5;  ///< share of the texture in fourth differences, at most
constexpr double kMostEnergy = 1.5;   ///< variance by eighth differences over that by residuals, at most
constexpr int kMostPixels = 1 << 17;  ///< number of pixels that tell the share of an older image

/// Difference of the order N along a row, centred at column 4.
template <int N, typename T>
double difference(const T* row) {
  constexpr std::array<double, 9> weights = N == 4
                                                ? std::array<double, 9>{0, 0, 1, -4, 6, -4, 1, 0, 0}
                                                : std::array<double, 9>{1, -8, 28, -56, 70, -56, 28, -8, 1};
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) sum += weights[k] * static_cast<double>(row[k]);
  return sum;
}
constexpr double kGain4 = 70, kGain8 = 12870;  ///< sums of the squared weights

/// Sums of products of differences, of the older and the newer image.
struct Products {
  double older4 = 0, older = 0, newer = 0, both = 0, n = 0;

  Products& operator+=(const Products& b) {
    older4 += b.older4, older += b.older, newer += b.newer, both += b.both, n += b.n;
    return *this;
  }
};

template <typename T>
Products products_in(const T* older, const T* newer, int width, int y,
                     const analysis::SkippedCells& skipped) {
  Products sum;
  for (int x = 0; x + 8 < width; ++x) {
    if (skipped.contains(x, y) || skipped.contains(x + 8, y)) continue;
    const double low = difference<4>(older + x), a = difference<8>(older + x), b = difference<8>(newer + x);
    sum += {low * low / kGain4, a * a / kGain8, b * b / kGain8, a * b / kGain8, 1};
  }
  return sum;
}

/// Noise that two images have in common.
struct SharedNoise {
  double correlation = 0;   ///< covariance over the variance of the older image; 0 if it is not significant
  double energy_ratio = 1;  ///< variance of the newer over that of the older image
};

SharedNoise shared_noise(ImageView older_rows, ImageView newer_rows, const analysis::SkippedCells& skipped,
                         double noise, core::ThreadPool& pool) {
  const int apart = 1 + static_cast<int>(std::int64_t{older_rows.width} * older_rows.height / kMostPixels);
  std::vector<Products> of_rows(older_rows.height / apart);
  visit_scalar(older_rows.type, [&]<typename T>(T) {
    core::for_each_row(pool, static_cast<int>(of_rows.size()), [&](int k) {
      const int y = k * apart;
      of_rows[k] = products_in(older_rows.row<T>(y), newer_rows.row<T>(y), older_rows.width, y, skipped);
    });
  });
  Products sum;
  for (const Products& row : of_rows) sum += row;
  if (!(sum.n > 0 && sum.older > 0 && sum.newer > 0)) return {};
  // Neighbouring differences share pixels: their squared correlations add up to 3.6.
  const double least = kSignificant * std::sqrt(3.6 / sum.n);
  const double texture = std::max(0.0, 1 - sum.older / sum.older4);
  if (texture > kMostTexture || sum.newer > kMostEnergy * noise * noise * sum.n) return {};
  // The share of a texture of blobs in eighth differences is about the cube of that in fourth differences.
  const double of_texture = texture * texture * texture;
  const double share = (sum.both / sum.older - of_texture) / (1 - of_texture);
  return {share > least ? std::min(share, 0.9) : 0, sum.newer / sum.older};
}

/// Displacement since an older frame, px.
struct Increment {
  double u, v;
};

}  // namespace

double share_of_older_image(ImageView older_rows, ImageView newer_rows, const analysis::SkippedCells& skipped,
                            double noise, core::ThreadPool& pool) {
  const SharedNoise found = shared_noise(older_rows, newer_rows, skipped, noise, pool);
  // An average of two images has less noise than each of them; a fixed pattern of the sensor leaves it.
  const double share = found.correlation;
  return share > 0 && found.energy_ratio < 1 - share * (1 - share) ? share : 0;
}

double share_of_frame_before(ImageView reference_rows, ImageView older_rows, ImageView newer_rows,
                             std::int64_t number, const analysis::SkippedCells& skipped, double noise,
                             core::ThreadPool& pool) {
  const double both = shared_noise(older_rows, newer_rows, skipped, noise, pool).correlation;
  if (both == 0) return 0;
  // A fixed pattern of the sensor is in all frames alike.
  const double fixed = shared_noise(reference_rows, newer_rows, skipped, noise, pool).correlation;
  const double more = both - fixed;
  if (more < kLeastShare) return 0;
  // Of the reference, the share to the power of the number is left.
  double share = more;
  for (int k = 0; k < 20; ++k) share = std::min(both, more + std::pow(share, static_cast<double>(number)));
  return share;
}

ImageLag::ImageLag(ImageView reference, double blob, const TrackOptions& options, core::ThreadPool& pool)
    : options_(options),
      pool_(pool),
      blob_(blob),
      reference_rows_(std::make_shared<const Image>(analysis::sampled_rows(reference, pool))) {}

std::shared_ptr<const LaggingFrame> ImageLag::take(ImageView frame) {
  auto taken = std::make_shared<LaggingFrame>();
  taken->rows = std::make_shared<const Image>(analysis::sampled_rows(frame, pool_));
  const std::lock_guard lock(mutex_);
  taken->number = last_taken_ ? last_taken_->number + 1 : 1;
  taken->rows_before = last_taken_ ? last_taken_->rows : reference_rows_;
  taken->skipped =
      analysis::SkippedCells(taken->rows->view(), taken->rows_before->view(), reference_rows_->view(),
                             last_taken_ ? last_taken_->skipped : analysis::SkippedCells(), pool_);
  last_taken_ = taken;
  return taken;
}

FieldStep ImageLag::step(std::shared_ptr<const LaggingFrame> frame) {
  return [this, frame = std::move(frame)](MeasuredFrame& measured) { apply(*frame, measured); };
}

double ImageLag::share_in(const LaggingFrame& frame, double noise) const {
  const ImageView rows = frame.rows->view(), before = frame.rows_before->view();
  return frame.number == 1 ? share_of_older_image(before, rows, frame.skipped, noise, pool_)
                           : share_of_frame_before(reference_rows_->view(), before, rows, frame.number,
                                                   frame.skipped, noise, pool_);
}

void ImageLag::apply(const LaggingFrame& frame, MeasuredFrame& measured) {
  Field& field = measured.result.field;
  const Grid& grid = field.grid();
  const double noise = measured.result.noise;
  const bool is_noisy = frame.rows->type() == ScalarType::f32 || frame.rows->type() == ScalarType::f64
                            ? noise > 0
                            : noise > kLeastNoise;
  const double share = is_noisy ? share_in(frame, noise) : 0;
  const bool is_skipped = is_noisy && !frame.skipped.empty();
  const bool is_next = frame.number == last_number_ + 1;
  const auto since_last = [&](std::int64_t k) -> Increment {
    if (frame.number == 1) return {field.u[k], field.v[k]};
    if (!is_next || last_u_.empty()) return {NAN, NAN};
    return {field.u[k] - last_u_[k], field.v[k] - last_v_[k]};
  };
  const int reach = options_.refine.subset / 2;
  std::vector<std::uint8_t> given_up(grid.nodes());
  const auto cells = [&](std::int64_t k) {
    const auto i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    return frame.skipped.around(grid.x(i) + field.u[k], grid.y(j) + field.v[k], reach);
  };
  // Points in a frame with skipped cells whose subsets show none; only they tell the motion.
  std::vector<std::uint8_t> updated(is_skipped ? grid.nodes() : 0);
  for (std::int64_t k = 0; k < std::ssize(updated); ++k)
    updated[k] = field.status[k] == Status::ok && cells(k).skipped == 0;
  const auto near = [&](std::int64_t k) -> std::int64_t {
    const auto i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    for (int far = 1; far * grid.step <= kNear; ++far)
      for (const auto& [di, dj] : kDirections) {
        const int x = i + far * di, y = j + far * dj;
        if (x < 0 || y < 0 || x >= grid.nx || y >= grid.ny) continue;
        if (const std::int64_t at = std::int64_t{y} * grid.nx + x; updated[at] != 0) return at;
      }
    return -1;
  };
  const auto bias_by_share = [&](std::int64_t k) -> Increment {
    const Increment step = since_last(k);
    const Increment old = std::isfinite(step.u + step.v) ? step : Increment{field.u[k], field.v[k]};
    const double blobs = blob_ > 0 ? std::hypot(old.u, old.v) / blob_ : 0;
    const double factor = share / (1 - share) * std::exp(-blobs * blobs / 2);
    return {factor * old.u, factor * old.v};
  };
  const auto bias_by_cells = [&](std::int64_t k) -> Increment {
    const auto sum = cells(k);
    if (sum.skipped == 0) return {0, 0};
    const std::int64_t at = near(k);
    const Increment step = at < 0 || sum.age == 0 ? Increment{0, 0} : since_last(at);
    const Increment all =
        at < 0 || sum.of_reference == 0 ? Increment{0, 0} : Increment{field.u[at], field.v[at]};
    const double motion = std::max(std::hypot(step.u, step.v), std::hypot(all.u, all.v));
    const bool is_known = at >= 0 && motion < kLargestKnown;  // false for NaN
    if (sum.skipped > (is_known ? kMostSkipped : kUnknownShare) * sum.all) return {HUGE_VAL, HUGE_VAL};
    if (!is_known) return {0, 0};
    const double rest = sum.all - sum.skipped;
    return {(sum.of_reference * all.u + sum.age * step.u) / rest,
            (sum.of_reference * all.v + sum.age * step.v) / rest};
  };
  const auto add = [&](std::int64_t k) {
    const Increment by_share = share > 0 ? bias_by_share(k) : Increment{0, 0};
    const Increment by_cells = is_skipped ? bias_by_cells(k) : Increment{0, 0};
    const double u = by_share.u + by_cells.u, v = by_share.v + by_cells.v;
    given_up[k] = !(std::max(std::abs(u), std::abs(v)) <= kLargestSigma);
    field.sigma_u[k] = static_cast<float>(std::hypot(field.sigma_u[k], u));
    field.sigma_v[k] = static_cast<float>(std::hypot(field.sigma_v[k], v));
  };
  std::vector<float> u_before(field.u.begin(), field.u.end()), v_before(field.v.begin(), field.v.end());
  if (share > 0 || is_skipped)
    change_displacements(measured, "refine", [&](Field&) {
      for (std::int64_t k = 0; k < grid.nodes(); ++k)
        if (field.status[k] == Status::ok) add(k);
      for (std::int64_t k = 0; k < grid.nodes(); ++k)
        if (given_up[k] != 0) clear_node(field, k, Status::low_correlation);
    });
  last_u_ = std::move(u_before), last_v_ = std::move(v_before);
  last_number_ = frame.number;
}

}  // namespace dic::track

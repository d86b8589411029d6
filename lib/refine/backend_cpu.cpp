#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <dic/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/least_pixels.hpp>
#include <dic/shared/saturation.hpp>
#include <dic/shared/shape.hpp>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/make_room.hpp"
#include "core/mask_counts.hpp"
#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "refine/backend.hpp"
#include "refine/current_sums.hpp"
#include "refine/image.hpp"
#include "refine/part_mask.hpp"
#include "refine/reference_sums.hpp"
#include "refine/subset_sigmas.hpp"
#include "refine/weight_table.hpp"

namespace dic::refine {
namespace {

/// Calls visitor with the number of parameters of the order as a compile-time constant.
template <typename Visitor>
decltype(auto) visit_order(int order, Visitor&& visitor) {
  if (order == 0) return visitor(std::integral_constant<int, 2>{});
  if (order == 1) return visitor(std::integral_constant<int, 6>{});
  return visitor(std::integral_constant<int, 12>{});
}

/// A prepared subset; its matrix is in CpuBackend::values.
struct PreparedPoint {
  int x = 0, y = 0;
  SubsetRect rect;
  Status status = Status::ok;
  bool masked = false;            // some pixels of the rectangle are outside the ROI
  PixelWeights mask;              // replaces the mask of the ROI
  const PartRow* rows = nullptr;  // rows of a part that is not a rectangle; the pointer is at its centre
  float unit_sigma_u = 0, unit_sigma_v = 0, unit_covariance = 0;
  GradientNoise gradient_noise;
  double count = 0, mean = 0, energy = 0;  // weighted; energy: sum (f - mean)^2
  double fitted = 0;                       // part of `count` that the fit uses up, see icgn::residual_sd
  /// Fraction of noise in the Gauss-Newton matrix per unit of 1 - zncc.
  double noise_share = 0;
};

template <int N>
using Vector = Eigen::Matrix<double, N, 1>;
template <int N>
using Square = Eigen::Matrix<double, N, N>;

/// The Gauss-Newton matrix of the N shape parameters, and the sums that remove mean and gain from it.
template <int N>
struct NormalEquations {
  Square<N> hessian;  // sum SD SD^T, SD made orthogonal to 1 and f
  Vector<N> sum;      // sum SD
  Vector<N> grey;     // sum SD (f - mean) / energy
};

/// Sums of products of the steepest-descent images SD, of f and of 1.
template <int N>
struct ImageProducts {
  Square<N> images;     // SD SD^T
  Vector<N> sum, grey;  // SD, SD f
};

template <int N>
ImageProducts<N> image_products(const ReferenceSubsetSums& s) {
  constexpr int m = N / 2;
  ImageProducts<N> out;
  for (int k = 0; k < m; ++k) {
    const icgn::Monomial p = icgn::basis(k);
    const int pk = icgn::monomial_index(p.a, p.b);
    out.sum[k] = p.factor * s.dx[pk];
    out.sum[m + k] = p.factor * s.dy[pk];
    out.grey[k] = p.factor * s.grey_dx[pk];
    out.grey[m + k] = p.factor * s.grey_dy[pk];
    for (int l = 0; l < m; ++l) {
      const icgn::Monomial q = icgn::basis(l);
      const int pq = icgn::monomial_index(p.a + q.a, p.b + q.b);
      const double factor = p.factor * q.factor;
      out.images(k, l) = factor * s.dx_dx[pq];
      out.images(k, m + l) = out.images(m + l, k) = factor * s.dx_dy[pq];
      out.images(m + k, m + l) = factor * s.dy_dy[pq];
    }
  }
  return out;
}

template <int N>
NormalEquations<N> normal_equations(const ReferenceSubsetSums& s) {
  const ImageProducts<N> p = image_products<N>(s);
  NormalEquations<N> n{p.images, p.sum, p.grey / s.grey_grey};
  n.hessian -= n.sum * n.sum.transpose() / s.count + p.grey * n.grey.transpose();
  return n;
}

/// Covariance of sum SD noise for noise of variance 1, with SD orthogonal to 1 and f. In weighted least
/// squares, noise counts by the squares of the weights. squared: sums by these squares, of grey values
/// relative to the mean by the weights.
template <int N>
Square<N> noise_products(const NormalEquations<N>& n, double count, const ReferenceSubsetSums& squared) {
  const ImageProducts<N> p = image_products<N>(squared);
  const Vector<N> mean = n.sum / count;
  const Square<N> by_mean = mean * p.sum.transpose(), by_grey = n.grey * p.grey.transpose(),
                  both = mean * n.grey.transpose();
  return p.images - by_mean - by_mean.transpose() - by_grey - by_grey.transpose() +
         squared.count * mean * mean.transpose() + squared.grey * (both + both.transpose()) +
         squared.grey_grey * n.grey * n.grey.transpose();
}

/// Replaces a symmetric matrix of unit diagonal by its inverse (symmetric sweeps); returns false if it is not
/// positive definite. This takes half the time of Eigen's LLT for 6 and 12 parameters.
template <int N>
bool invert_positive_definite(Square<N>& a) {
  for (int k = 0; k < N; ++k) {
    const Vector<N> column = a.col(k);
    const double pivot = column[k];
    if (!(pivot > icgn::least_pivot)) return false;
    const Vector<N> scaled = column / pivot;
    a.noalias() -= column * scaled.transpose();
    a.col(k) = scaled;
    a.row(k) = scaled.transpose();
    a(k, k) = -1 / pivot;
  }
  a = -a;
  return true;
}

/// Number of values in the upper triangle of a matrix. Each point stores the triangle of its inverse Hessian
/// by rows, then NormalEquations::sum and ::grey.
constexpr std::size_t triangle(int parameters) {
  return static_cast<std::size_t>(parameters) * (parameters + 1) / 2;
}
constexpr std::size_t values_per_point(int parameters) { return triangle(parameters) + 2 * parameters; }

template <int N>
void pack(const Square<N>& symmetric, float* out) {
  for (int r = 0; r < N; ++r)
    for (int c = r; c < N; ++c) *out++ = static_cast<float>(symmetric(r, c));
}

template <int N>
Vector<N> multiply(const float* packed, const Vector<N>& b) {
  Vector<N> out = Vector<N>::Zero();
  for (int r = 0; r < N; ++r) {
    out[r] += *packed++ * b[r];
    for (int c = r + 1; c < N; ++c) {
      const double value = *packed++;
      out[r] += value * b[c];
      out[c] += value * b[r];
    }
  }
  return out;
}

template <int N>
ShapeParameters shape_from(const Vector<N>& p) {
  ShapeParameters s;
  double* u[] = {&s.u, &s.ux, &s.uy, &s.uxx, &s.uxy, &s.uyy};
  double* v[] = {&s.v, &s.vx, &s.vy, &s.vxx, &s.vxy, &s.vyy};
  constexpr int m = N / 2;
  for (int k = 0; k < m; ++k) {
    *u[k] = p[k];
    *v[k] = p[m + k];
  }
  return s;
}

bool is_finite(const ShapeParameters& s) {
  return std::isfinite(s.u + s.ux + s.uy + s.uxx + s.uxy + s.uyy + s.v + s.vx + s.vy + s.vxx + s.vxy + s.vyy);
}

struct Box {
  double x_min, x_max, y_min, y_max;
};

/// Bounding box of the displaced pixels of a subset, relative to its centre.
Box displaced_box(const SubsetRect& r, const ShapeParameters& s) {
  Box box{1e30, -1e30, 1e30, -1e30};
  const auto include = [&](int i, int j) {
    const double x = i + s.u_at(i, j), y = j + s.v_at(i, j);
    box = {std::min(box.x_min, x), std::max(box.x_max, x), std::min(box.y_min, y), std::max(box.y_max, y)};
  };
  for (int j : {r.top, r.bottom})
    for (int i : {r.left, r.right}) include(i, j);
  const double h = r.bottom - r.top, w = r.right - r.left;
  const Warp d = displacement_of(s);
  const double bulge_x = icgn::bulge(d.x, w, h), bulge_y = icgn::bulge(d.y, w, h);
  return {box.x_min - bulge_x, box.x_max + bulge_x, box.y_min - bulge_y, box.y_max + bulge_y};
}

/// Sets the gradients of the outermost pixels to 0: they are extrapolated, with more error than information.
void clear_outermost(PaddedImage& gradient) {
  const int w = gradient.width(), h = gradient.height();
  for (int x = 0; x < w; ++x) *gradient.at(x, 0) = *gradient.at(x, h - 1) = 0;
  for (int y = 0; y < h; ++y) *gradient.at(0, y) = *gradient.at(w - 1, y) = 0;
}

float largest(const PaddedImage& image, core::ThreadPool& pool) {
  std::vector<float> of_rows(image.height());
  core::for_each_row(pool, image.height(), [&](int row) {
    of_rows[row] = *std::max_element(image.at(0, row), image.at(0, row) + image.width());
  });
  return std::max(0.0f, *std::ranges::max_element(of_rows));
}

/// Sets all pixels that are not 0 to 1.
void binarize(PaddedImage& image, core::ThreadPool& pool) {
  core::for_each_row(pool, image.height(), [&](int row) {
    for (int i = 0; i < image.width(); ++i) *image.at(i, row) = *image.at(i, row) != 0 ? 1.0f : 0.0f;
  });
}

/// A mask that is 255 in the squares of 3x3 px whose pixels all have the largest value of their type; empty
/// if there is no such square.
Image saturated_pixels(ImageView image, core::ThreadPool& pool) {
  Image out;
  visit_scalar(image.type, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
      constexpr T most = std::numeric_limits<T>::max();
      const auto is_centre = [&](int x, int y) {
        for (int j = y - 1; j <= y + 1; ++j)
          for (int i = x - 1; i <= x + 1; ++i)
            if (image.row<T>(j)[i] != most) return false;
        return true;
      };
      std::vector<std::uint8_t> has_some(image.height);  // rows with at least one such value
      core::for_each_row(pool, image.height, [&](int y) {
        const T* row = image.row<T>(y);
        has_some[y] = std::find(row, row + image.width, most) != row + image.width;
      });
      for (int y = 1; y + 1 < image.height; ++y) {
        if (!has_some[y - 1] || !has_some[y] || !has_some[y + 1]) continue;
        for (int x = 1; x + 1 < image.width; ++x) {
          if (!is_centre(x, y)) continue;
          if (out.empty()) out = Image(image.size(), ScalarType::u8);
          for (int j = y - 1; j <= y + 1; ++j) std::fill_n(out.row<std::uint8_t>(j) + x - 1, 3, 255);
        }
      }
    }
  });
  return out;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const RefineOptions& o, core::ThreadPool& threads)
      : options(o), gradient_gain(icgn::gradient_noise_gain(o.interpolation, o.smoothing)), pool(threads) {
    set_subset(options.subset);
  }

  /// Changes the size of subsets; set_points() must be called afterwards.
  void set_subset(int subset) {
    options.subset = subset;
    if (options.weights == SubsetWeights::uniform) return;
    window.emplace(window_table(options.weights, subset, 1));
    squared_window.emplace(window_table(options.weights, subset, 2));
  }

  void set_reference(ImageView image, std::span<const int> x, std::span<const int> y,
                     ImageView roi) override {
    set_image(image, roi);
    set_points(x, y);
  }

  void set_image(ImageView image, ImageView roi) {
    reference = to_float(image, pool);
    reference.reflect_margin();
    spline_gradient(reference, options.interpolation, dx, dy, pool);
    saturated_reference = saturated_pixels(image, pool);
    count(saturated_reference, reference_counts);
    clear_outermost(dx);
    clear_outermost(dy);
    inside_roi = roi.empty() ? PaddedImage() : to_float(roi, pool);
    binarize(inside_roi, pool);
    grey_scale = std::max(largest(reference, pool) / 255.0f, 1e-20f);
    roi_counts.reset();
    if (!roi.empty()) roi_counts.emplace(roi, pool);
  }

  void set_points(std::span<const int> x, std::span<const int> y) {
    points.resize(x.size());
    values.resize(x.size() * values_per_point(parameters()));
    const std::vector<std::int64_t> starts = starts_of_runs(x, y);
    std::vector<ColumnSums> columns(pool.size());
    pool.parallel_for(std::ssize(starts) - 1, 1, [&](std::int64_t run, std::int64_t, int worker) {
      const std::int64_t begin = starts[run], end = starts[run + 1];
      for (std::int64_t i = begin; i < end; ++i) {
        points[i] = {};
        points[i].x = x[i];
        points[i].y = y[i];
      }
      prepare_run(std::span(points).subspan(begin, end - begin), matrix(begin), columns[worker]);
    });
  }

  void set_current(ImageView image) override {
    spline_coefficients(image, options.interpolation, current, pool);
    saturated_current = saturated_pixels(image, pool);
    count(saturated_current, current_counts);
  }

  Status reference_status(std::int64_t i) const override { return points[i].status; }
  float reference_contrast(std::int64_t i) const override {
    const PreparedPoint& p = points[i];
    return p.status == Status::ok ? contrast_of(p) : 0;
  }

  /// The larger unit sigma of u and v; infinite if the subset cannot be measured.
  double unit_sigma(std::int64_t i) const {
    const PreparedPoint& p = points[i];
    return p.status == Status::ok ? std::max(p.unit_sigma_u, p.unit_sigma_v) : HUGE_VAL;
  }

  void refine(const Batch& batch, const std::stop_token& stop) override {
    const auto some = [&](std::int64_t begin, std::int64_t end, int) {
      if (stop.stop_requested()) return;
      for (std::int64_t k = begin; k < end; ++k) {
        core::make_room_in_memory();
        batch.results[k] = refine_point(points[batch.points[k]], matrix(batch.points[k]), batch.starts[k],
                                        options.max_iterations);
      }
    };
    share(batch.points.size(), some);
  }

  void refine_parts(const PartBatch& batch, const std::stop_token& stop) override {
    const auto some = [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<float> own(values_per_point(parameters()));
      for (std::int64_t k = begin; k < end && !stop.stop_requested(); ++k) {
        core::make_room_in_memory();
        const SubsetPart& part = batch.parts[k];
        PreparedPoint p;
        p.x = points[part.point].x;
        p.y = points[part.point].y;
        std::optional<PartMask> mask;
        prepare_part(p, part, mask, own.data());
        batch.results[k] =
            refine_point(p, own.data(), batch.starts[k], batch.max_iterations, part.most_residual, true);
      }
    };
    share(batch.parts.size(), some);
  }

  std::string kernel() const override { return "cpu-icgn-" + std::string(simd_target_name()); }

 private:
  static constexpr int kRunWidth = 1024;  ///< widest run, px; its column sums stay in the cache
  static constexpr float kAnyResidual = std::numeric_limits<float>::infinity();

  int parameters() const { return 2 * icgn::monomial_count(options.order); }
  int radius() const { return options.subset / 2; }
  SubsetRect whole() const { return {-radius(), radius(), -radius(), radius()}; }
  double least_pixels() const { return refine::least_pixels(options); }
  double least_part() const { return kLeastPart * options.subset * options.subset; }
  float* matrix(std::int64_t point) { return values.data() + point * values_per_point(parameters()); }

  /// Indices at which the runs of prepare_run() begin, then the number of points. With a window, the weight
  /// of a pixel depends on the subset, so that each point is a run.
  std::vector<std::int64_t> starts_of_runs(std::span<const int> x, std::span<const int> y) const {
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool goes_on = i > 0 && !window && y[i] == y[i - 1] && x[i] >= x[i - 1] &&
                           x[i] - x[i - 1] <= options.subset && x[i] - x[starts.back()] < kRunWidth;
      if (!goes_on) starts.push_back(static_cast<std::int64_t>(i));
    }
    starts.push_back(std::ssize(x));
    return starts;
  }

  /// Distributes the refinements 0 .. count - 1 over the threads.
  template <typename Some>
  void share(std::size_t count, const Some& some) {
    constexpr std::int64_t grain = 32;
    const auto n = static_cast<std::int64_t>(count);
    if (n <= grain) return some(0, n, 0);  // sharing so few is not worth it
    pool.parallel_for(n, grain, some);
  }

  ReferencePatch patch_at(int x, int y) const {
    ReferencePatch out;
    out.grey = reference.at(x, y);
    out.dx = dx.at(x, y);
    out.dy = dy.at(x, y);
    out.stride = reference.stride();
    return out;
  }

  ReferencePatch patch(const PreparedPoint& p) const {
    ReferencePatch out = patch_at(p.x, p.y);
    out.mask = p.mask;
    if (p.mask.none() && p.masked) out.mask = {inside_roi.at(p.x, p.y), inside_roi.stride()};
    if (window) out.window = window->view();
    out.rect = p.rect;
    out.part = p.rows;
    return out;
  }

  /// Cuts the rectangle to the image; sets out_of_image if fewer than `least` px, or not the centre, remain.
  void clip_to_image(PreparedPoint& p, double least) const {
    SubsetRect& rect = p.rect;
    rect = {std::max(rect.left, -p.x), std::min(rect.right, reference.width() - 1 - p.x),
            std::max(rect.top, -p.y), std::min(rect.bottom, reference.height() - 1 - p.y)};
    const double inside = static_cast<double>(rect.right - rect.left + 1) * (rect.bottom - rect.top + 1);
    const bool outside = rect.left > 0 || rect.right < 0 || rect.top > 0 || rect.bottom < 0;
    if (outside || inside < least) p.status = Status::out_of_image;
  }

  /// Cuts the rectangle to its pixels inside the ROI; returns false if these are fewer than `least`.
  bool clip_to_roi(PreparedPoint& p, const core::MaskCounts& roi, double least) const {
    SubsetRect& rect = p.rect;
    const auto inside = [&](int left, int right, int top, int bottom) {
      return roi.inside(p.x + left, p.y + top, right - left + 1, bottom - top + 1);
    };
    const std::int64_t count = inside(rect.left, rect.right, rect.top, rect.bottom);
    if (static_cast<double>(count) < least) return false;
    while (inside(rect.left, rect.left, rect.top, rect.bottom) == 0) ++rect.left;
    while (inside(rect.right, rect.right, rect.top, rect.bottom) == 0) --rect.right;
    while (inside(rect.left, rect.right, rect.top, rect.top) == 0) ++rect.top;
    while (inside(rect.left, rect.right, rect.bottom, rect.bottom) == 0) --rect.bottom;
    p.masked = count < std::int64_t{rect.right - rect.left + 1} * (rect.bottom - rect.top + 1);
    return true;
  }

  /// Cuts p.rect to the image and the ROI; sets the status if fewer than `least` px remain.
  void clip(PreparedPoint& p, double least) const {
    clip_to_image(p, least);
    if (p.status == Status::ok && roi_counts && !clip_to_roi(p, *roi_counts, least))
      p.status = Status::masked;
  }

  /// Prepares the whole subsets of points in one row of pixels, each at most a subset to the right of the
  /// previous one. Each column of pixels is summed only once for all of them.
  void prepare_run(std::span<PreparedPoint> run, float* matrices, ColumnSums& columns) const {
    for (PreparedPoint& p : run) {
      p.rect = whole();
      clip(p, least_pixels());
    }
    const PreparedPoint& first = run.front();
    const int y = first.y, x = first.x, last = run.back().x - x;
    ReferencePatch rows = patch_at(x, y);
    if (!inside_roi.empty()) rows.mask = {inside_roi.at(x, y), inside_roi.stride()};
    if (window) rows.window = window->view();
    rows.rect = {std::max(-radius(), -x), std::min(last + radius(), reference.width() - 1 - x),
                 std::max(-radius(), -y), std::min(radius(), reference.height() - 1 - y)};
    columns.sum(rows, options.order);
    for (std::size_t k = 0; k < run.size(); ++k) {
      PreparedPoint& p = run[k];
      if (p.status != Status::ok) continue;
      const int centre = p.x - x;
      use_sums(p, columns.over({centre + p.rect.left, centre + p.rect.right, centre}),
               matrices + k * values_per_point(parameters()));
    }
  }

  /// Prepares a part of a subset. mask: receives the pixels of a part that is not a rectangle.
  void prepare_part(PreparedPoint& p, SubsetPart part, std::optional<PartMask>& mask, float* matrix) const {
    p.rect = {part.left, part.right, part.top, part.bottom};
    if (part.is_rectangle()) {
      clip(p, least_part());
      if (p.status == Status::ok) prepare_sums(p, matrix);
      return;
    }
    clip_to_image(p, least_part());
    if (p.status != Status::ok) return;
    part.left = p.rect.left;
    part.right = p.rect.right;
    part.top = p.rect.top;
    part.bottom = p.rect.bottom;
    shrink_to_pixels(part);
    WeightTable& weights = mask.emplace(part, options.subset).weights();
    p.rows = mask->rows();
    for (int j = part.top; j <= part.bottom && !inside_roi.empty(); ++j)
      for (int i = part.left; i <= part.right; ++i)
        if (*inside_roi.at(p.x + i, p.y + j) == 0) weights.at(i, j) = 0;
    p.rect = {part.left, part.right, part.top, part.bottom};
    take_mask(p, weights, matrix);
  }

  /// Prepares the pixels of a mask within p.rect; sets the status to masked if they are too few.
  void take_mask(PreparedPoint& p, WeightTable& weights, float* matrix) const {
    const SubsetRect within = p.rect;
    SubsetRect& rect = p.rect = {radius(), -radius(), radius(), -radius()};
    int pixels = 0;
    for (int j = within.top; j <= within.bottom; ++j)
      for (int i = within.left; i <= within.right; ++i) {
        if (weights.at(i, j) == 0) continue;
        rect = {std::min(rect.left, i), std::max(rect.right, i), std::min(rect.top, j),
                std::max(rect.bottom, j)};
        ++pixels;
      }
    p.mask = weights.view();
    if (pixels < least_part())
      p.status = Status::masked;
    else
      prepare_sums(p, matrix);
  }

  /// Prepares a point whose rectangle and weights are known to hold enough pixels.
  void prepare_sums(PreparedPoint& p, float* matrix) const {
    use_sums(p, reference_sums(patch(p), options.order), matrix);
  }

  void use_sums(PreparedPoint& p, const ReferenceSubsetSums& sums, float* matrix) const {
    p.count = sums.count;
    p.mean = sums.mean;
    p.energy = sums.grey_grey;
    const double flat = icgn::flat_sd * grey_scale;
    if (!(sums.grey_grey > flat * flat * sums.count)) {
      p.status = Status::flat;
      return;
    }
    p.noise_share = 2 * gradient_gain * sums.grey_grey / (sums.dx_dx[0] + sums.dy_dy[0]);
    visit_order(options.order, [&](auto n) { invert<n>(p, normal_equations<n>(sums), matrix); });
  }

  ReferenceSubsetSums sums_by_squared_weights(const PreparedPoint& p) const {
    ReferencePatch squared = patch(p);
    squared.window = squared_window->view();
    return reference_sums_about(static_cast<float>(p.mean), squared, options.order);
  }

  /// Predicts sigmas and gradient noise from the covariance of the shape parameters for noise of variance 1.
  template <int N>
  void predict(PreparedPoint& p, const NormalEquations<N>& equations, const Square<N>& inverse) const {
    Square<N> covariance = inverse;
    if (!window) {
      p.fitted = icgn::fitted_parameters(N);
      p.gradient_noise = gradient_noise<N>(inverse, {double(p.rect.left), double(p.rect.right)},
                                           {double(p.rect.top), double(p.rect.bottom)}, p.count);
    } else {
      const ReferenceSubsetSums squared = sums_by_squared_weights(p);
      const Square<N> noise = noise_products<N>(equations, p.count, squared);
      covariance = inverse * noise * inverse;
      p.fitted = squared.count / p.count + squared.grey_grey / p.energy + inverse.cwiseProduct(noise).sum();
      const auto moments = [this](int first, int last) {
        return icgn::PixelMoments<double>(first, last, options.weights, options.subset);
      };
      p.gradient_noise = gradient_noise<N>(inverse, moments(p.rect.left, p.rect.right),
                                           moments(p.rect.top, p.rect.bottom), squared.count);
    }
    p.unit_sigma_u = static_cast<float>(std::sqrt(2 * covariance(0, 0)));
    p.unit_sigma_v = static_cast<float>(std::sqrt(2 * covariance(N / 2, N / 2)));
    p.unit_covariance = static_cast<float>(2 * covariance(0, N / 2));
  }

  template <int N>
  void invert(PreparedPoint& p, const NormalEquations<N>& equations, float* out) const {
    // Scaling to a unit diagonal makes the test for a singular matrix independent of units.
    const Vector<N> diagonal = equations.hessian.diagonal();
    if (!(diagonal.minCoeff() > 0)) {
      p.status = Status::flat;
      return;
    }
    const Vector<N> scale = diagonal.cwiseSqrt().cwiseInverse();
    Square<N> scaled = scale.asDiagonal() * equations.hessian * scale.asDiagonal();
    if (!invert_positive_definite(scaled) || !(scaled.diagonal().maxCoeff() < icgn::largest_inverse)) {
      p.status = Status::flat;  // the contrast has only one direction: an edge, a stripe
      return;
    }
    const Square<N> inverse = scale.asDiagonal() * scaled * scale.asDiagonal();
    predict<N>(p, equations, inverse);
    if (std::max(p.unit_sigma_u, p.unit_sigma_v) * grey_scale > icgn::largest_unit_sigma) {
      p.status = Status::flat;
      return;
    }
    pack<N>(inverse, out);
    out += triangle(N);
    Eigen::Map<Eigen::Matrix<float, N, 1>>{out} = equations.sum.template cast<float>();
    Eigen::Map<Eigen::Matrix<float, N, 1>>{out + N} = equations.grey.template cast<float>();
  }

  /// Effect of noisy gradients on u and v. count: sum of the squared weights.
  template <int N>
  GradientNoise gradient_noise(const Square<N>& inverse, const icgn::PixelMoments<double>& x,
                               const icgn::PixelMoments<double>& y, double count) const {
    double of_u[N], of_v[N];
    for (int k = 0; k < N; ++k) {
      of_u[k] = inverse(k, 0);
      of_v[k] = inverse(k, N / 2);
    }
    return icgn::gradient_noise<N, double>(of_u, of_v, x, y, count * gradient_gain);
  }

  bool inside_current(const PreparedPoint& p, const SubsetRect& rect, const ShapeParameters& s) const {
    const Box box = displaced_box(rect, s);
    return p.x + box.x_min >= -icgn::border && p.x + box.x_max <= current.width() - 1 + icgn::border &&
           p.y + box.y_min >= -icgn::border && p.y + box.y_max <= current.height() - 1 + icgn::border;
  }
  /// True if the rectangle, or each row of the part in it, lies in the current image.
  bool inside_current(const PreparedPoint& p, const ShapeParameters& s) const {
    if (inside_current(p, p.rect, s)) return true;
    if (!p.rows) return false;
    for (int j = p.rect.top; j <= p.rect.bottom; ++j) {
      const SubsetRect row{std::max(p.rows[j].first, p.rect.left), std::min(p.rows[j].last, p.rect.right), j,
                           j};
      if (row.left <= row.right && !inside_current(p, row, s)) return false;
    }
    return true;
  }

  CurrentSums sums_at(const PreparedPoint& p, const ShapeParameters& s, const GreyFit& fit,
                      int iteration) const {
    const double ru = std::nearbyint(s.u), rv = std::nearbyint(s.v);
    CurrentPatch c;
    c.coefficients = current.at(p.x + static_cast<int>(ru), p.y + static_cast<int>(rv));
    c.stride = current.stride();
    c.shape = s;
    c.shape.u -= ru;
    c.shape.v -= rv;
    c.fit = fit;
    CurrentSums sums;
    const auto arithmetic = iteration <= icgn::float_iterations ? Arithmetic::floats : Arithmetic::doubles;
    ReferencePatch reference_patch = patch(p);
    if (p.rows && !inside_current(p, p.rect, s)) reference_patch.rows = p.rows;
    current_sums(reference_patch, c, options.order, options.interpolation, arithmetic, sums);
    return sums;
  }

  /// A step of the shape, and the misfit and the noise fraction predicted after it.
  struct Step {
    ShapeParameters change;
    double misfit, noise_fraction;
  };

  /// Gauss-Newton step from the sums. v: packed values of the point; mean: mean residual; gain: standard
  /// deviation of f divided by that of g.
  template <int N>
  Step step(const PreparedPoint& point, const float* v, const CurrentSums& s, double mean, double gain,
            double zncc) const {
    constexpr int m = N / 2;
    const Eigen::Map<const Eigen::Matrix<float, N, 1>> sum(v + triangle(N)), grey(v + triangle(N) + N);
    Vector<N> b;
    for (int k = 0; k < m; ++k) {
      const icgn::Monomial p = icgn::basis(k);
      const int at = icgn::monomial_index(p.a, p.b);
      b[k] = p.factor * s.dx[at];
      b[m + k] = p.factor * s.dy[at];
    }
    b -= mean * sum.template cast<double>() + s.reference_rest * grey.template cast<double>();
    b *= gain;
    const Vector<N> change = multiply<N>(v, b);
    const double misfit = icgn::misfit_after(zncc, b.dot(change), point.energy);
    const double noise = icgn::noise_fraction(point.noise_share, misfit);
    return {shape_from<N>(icgn::relaxation(noise) * change), misfit, noise};
  }

  /// A result without a shape.
  RefinedPoint result_of(const PreparedPoint& p, Status status, int iterations, float zncc = 0) const {
    RefinedPoint out;
    out.status = status;
    out.iterations = static_cast<std::int16_t>(iterations);
    out.zncc = zncc;
    out.unit_sigma_u = p.unit_sigma_u;
    out.unit_sigma_v = p.unit_sigma_v;
    out.unit_covariance = p.unit_covariance;
    out.gradient_noise = p.gradient_noise;
    return out;
  }

  RefinedPoint refine_point(const PreparedPoint& p, const float* matrix, const ShapeParameters& start,
                            int max_iterations, float most_residual = kAnyResidual,
                            bool is_part = false) const {
    const RefinedPoint out =
        iterate(p, matrix, start, {max_iterations, icgn::patience(max_iterations, is_part), most_residual});
    if (out.status != Status::ok || (saturated_reference.empty() && saturated_current.empty())) return out;
    return corrected_for_saturation(p, out, max_iterations, is_part);
  }

  bool is_saturated(const Image& saturated, long x, long y) const {
    if (saturated.empty() || x < 0 || y < 0 || x >= saturated.width() || y >= saturated.height())
      return false;
    return saturated.row<std::uint8_t>(static_cast<int>(y))[x] != 0;
  }

  /// True if a pixel of the rectangle is measured.
  bool counts(const PreparedPoint& p, int i, int j) const {
    if (!p.mask.none()) return *p.mask.at(i, j) != 0;
    return !p.masked || *inside_roi.at(p.x + i, p.y + j) != 0;
  }

  /// Tells in which images a pixel of a subset, displaced by the shape, is saturated.
  icgn::Saturation saturation(const PreparedPoint& p, const ShapeParameters& shape, int i, int j) const {
    const long x = std::lround(p.x + i + shape.u_at(i, j)), y = std::lround(p.y + j + shape.v_at(i, j));
    return {is_saturated(saturated_reference, p.x + i, p.y + j), is_saturated(saturated_current, x, y)};
  }

  void count(const Image& saturated, std::optional<core::MaskCounts>& counts) {
    counts.reset();
    if (!saturated.empty()) counts.emplace(saturated.view(), pool);
  }

  /// True if a rectangle of pixels has saturated ones. counts: those of the image; empty if it has none.
  static bool any_saturated(const std::optional<core::MaskCounts>& counts, const Box& box, Size image) {
    if (!counts) return false;
    const auto within = [](double at, int size) {
      return static_cast<int>(std::clamp(at, 0.0, double(size)));
    };
    const int left = within(std::floor(box.x_min), image.width),
              top = within(std::floor(box.y_min), image.height),
              right = within(std::ceil(box.x_max) + 1, image.width),
              bottom = within(std::ceil(box.y_max) + 1, image.height);
    return counts->inside(left, top, right - left, bottom - top) > 0;
  }

  /// True if saturated pixels of any image may matter to a point.
  bool may_be_saturated(const PreparedPoint& p, const ShapeParameters& shape) const {
    const int reach = icgn::glare_reach(radius());
    const SubsetRect rect{-reach, reach, -reach, reach};
    const auto around = [&p](const Box& box) {
      return Box{p.x + box.x_min, p.x + box.x_max, p.y + box.y_min, p.y + box.y_max};
    };
    const Size size{reference.width(), reference.height()};
    return any_saturated(reference_counts, around(displaced_box(rect, {})), size) ||
           any_saturated(current_counts, around(displaced_box(rect, shape)), size);
  }

  /// True if all pixels within `reach` px of (x, y) along each axis are saturated.
  bool is_white(const PreparedPoint& p, const ShapeParameters& shape, int x, int y, int reach) const {
    for (int j = y - reach; j <= y + reach; ++j)
      for (int i = x - reach; i <= x + reach; ++i)
        if (!saturation(p, shape, i, j).any()) return false;
    return true;
  }

  /// Measures again without saturated pixels if necessary, and increases the sigmas beside glare.
  RefinedPoint corrected_for_saturation(const PreparedPoint& p, const RefinedPoint& found, int max_iterations,
                                        bool is_part) const {
    if (!may_be_saturated(p, found.shape)) return found;
    const auto white = [&](int x, int y, int reach) { return is_white(p, found.shape, x, y, reach); };
    RefinedPoint out = refined_without_saturated(p, found, max_iterations, is_part, white);
    if (out.status != Status::ok || !icgn::is_beside_glare(radius(), white)) return out;
    out.unit_sigma_u *= icgn::kBesideGlare;
    out.unit_sigma_v *= icgn::kBesideGlare;
    out.unit_covariance *= icgn::kBesideGlare * icgn::kBesideGlare;
    return out;
  }

  /// Refines again without saturated pixels if icgn::saturation_rule says so.
  template <typename IsWhite>
  RefinedPoint refined_without_saturated(const PreparedPoint& p, const RefinedPoint& found,
                                         int max_iterations, bool is_part, const IsWhite& white) const {
    const SubsetRect& r = p.rect;
    const auto each = [&](const auto& visit) {
      for (int j = r.top; j <= r.bottom; ++j)
        for (int i = r.left; i <= r.right; ++i)
          if (counts(p, i, j)) visit(i, j, saturation(p, found.shape, i, j));
    };
    icgn::SaturationCounts counted;
    each([&](int, int, icgn::Saturation pixel) { counted.add(pixel); });
    const icgn::SaturationRule rule = icgn::saturation_rule(counted, is_part, radius(), white);
    if (rule == icgn::SaturationRule::keep) return found;
    if (rule == icgn::SaturationRule::give_up)
      return result_of(p, Status::low_correlation, found.iterations, found.zncc);
    WeightTable mask(options.subset);
    each([&](int i, int j, icgn::Saturation pixel) {
      mask.at(i, j) = icgn::is_left_out(pixel, rule) ? 0.0f : 1.0f;
    });
    PreparedPoint rest = p;
    std::vector<float> own(values_per_point(parameters()));
    take_mask(rest, mask, own.data());
    if (rest.status != Status::ok) return result_of(p, Status::low_correlation, found.iterations, found.zncc);
    return iterate(rest, own.data(), found.shape,
                   {max_iterations, icgn::patience(max_iterations, is_part), kAnyResidual});
  }

  float residual_sd(const PreparedPoint& p, float zncc) const {
    return static_cast<float>(icgn::residual_sd(double{zncc}, p.energy, p.count, p.fitted));
  }
  /// Standard deviation of the grey values, with the degrees of freedom of the residual.
  float contrast_of(const PreparedPoint& p) const { return residual_sd(p, 0.5f); }

  /// When a refinement is given up.
  struct Limits {
    int max_iterations, patience;  ///< see icgn::patience
    float most_residual;           ///< see icgn::is_hopeless
  };

  RefinedPoint iterate(const PreparedPoint& p, const float* matrix, const ShapeParameters& start,
                       const Limits& limits) const {
    if (p.status != Status::ok) return result_of(p, p.status, 0);
    ShapeParameters shape = truncated(start, options.order);
    GreyFit fit{p.mean, p.mean};
    float zncc = 0;
    double last_step = 0;  // px
    for (int iteration = 1; iteration <= limits.max_iterations; ++iteration) {
      if (!is_finite(shape) || std::abs(shape.u - start.u) > radius() ||
          std::abs(shape.v - start.v) > radius())
        return result_of(p, Status::diverged, iteration - 1, zncc);
      if (!inside_current(p, shape)) return result_of(p, Status::out_of_image, iteration - 1, zncc);
      const CurrentSums s = sums_at(p, shape, fit, iteration);
      const double mean = s.rest / p.count;
      const double covariance = s.reference_rest + fit.contrast * p.energy;
      const double energy_g = s.rest_rest - mean * s.rest + fit.contrast * (s.reference_rest + covariance);
      if (!(energy_g > icgn::least_energy * p.energy))
        return result_of(p, Status::low_correlation, iteration);
      zncc = static_cast<float>(std::clamp(covariance / std::sqrt(p.energy * energy_g), -1.0, 1.0));
      if (icgn::is_hopeless(iteration, residual_sd(p, zncc), limits.most_residual))
        return result_of(p, Status::low_correlation, iteration, zncc);
      const double gain = std::sqrt(p.energy / energy_g);
      const Step next =
          visit_order(options.order, [&](auto n) { return step<n>(p, matrix, s, mean, gain, double{zncc}); });
      const Warp change = warp_of(next.change);
      if (!(jacobian(change) > icgn::least_jacobian)) return result_of(p, Status::diverged, iteration, zncc);
      shape = truncated(parameters_of(compose(warp_of(shape), inverse(change))), options.order);
      fit.level += mean;
      fit.contrast = covariance / p.energy;
      const double before = std::exchange(last_step, largest_displacement(next.change, radius()));
      if (icgn::is_last_step(last_step, before, next.noise_fraction,
                             icgn::tolerance_at(iteration, limits.max_iterations, options.tolerance)))
        return finished(p, shape, iteration, static_cast<float>(std::clamp(1 - next.misfit, -1.0, 1.0)));
      if (iteration >= limits.patience &&
          icgn::is_stuck(iteration, limits.max_iterations, last_step, before, options.tolerance))
        return result_of(p, unfinished(zncc), iteration, zncc);
    }
    return result_of(p, unfinished(zncc), limits.max_iterations, zncc);
  }

  Status unfinished(float zncc) const {
    return zncc < options.min_zncc ? Status::low_correlation : Status::not_converged;
  }

  RefinedPoint finished(const PreparedPoint& p, const ShapeParameters& shape, int iterations,
                        float zncc) const {
    RefinedPoint out =
        result_of(p, zncc < options.min_zncc ? Status::low_correlation : Status::ok, iterations, zncc);
    if (out.status == Status::ok && !inside_current(p, shape)) out.status = Status::out_of_image;
    out.shape = shape;
    out.residual_sd = residual_sd(p, zncc);
    return out;
  }

  RefineOptions options;
  double gradient_gain;  // gain of noise from the image to its gradient
  core::ThreadPool& pool;
  std::optional<WeightTable> window, squared_window;  // empty if all pixels have the same weight
  PaddedImage reference, dx, dy, inside_roi, current;
  Image saturated_reference, saturated_current;  // masks, see saturated_pixels()
  std::optional<core::MaskCounts> reference_counts,
      current_counts;     // of the saturated pixels, if there are any
  double grey_scale = 1;  // largest grey value of the reference over 255
  std::optional<core::MaskCounts> roi_counts;
  core::RawVector<PreparedPoint> points;
  core::RawVector<float> values;
};

}  // namespace

std::unique_ptr<Backend> open_cpu(const RefineOptions& options, core::ThreadPool& pool) {
  return std::make_unique<CpuBackend>(options, pool);
}

struct SubsetSigmas::Impl {
  CpuBackend backend;
};

SubsetSigmas::SubsetSigmas(const RefineOptions& options, core::ThreadPool& pool, ImageView reference,
                           ImageView roi)
    : impl_(new Impl{CpuBackend(options, pool)}) {
  impl_->backend.set_image(reference, roi);
}

SubsetSigmas::~SubsetSigmas() = default;

std::vector<double> SubsetSigmas::of(int subset, std::span<const int> x, std::span<const int> y) {
  CpuBackend& backend = impl_->backend;
  backend.set_subset(subset);
  backend.set_points(x, y);
  std::vector<double> sigmas;
  for (std::size_t k = 0; k < x.size(); ++k)
    sigmas.push_back(backend.unit_sigma(static_cast<std::int64_t>(k)));
  return sigmas;
}

}  // namespace dic::refine

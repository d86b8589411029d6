#pragma once

#include <dic/shared/strain.hpp>
#include <dic/shared/strain_flattening.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <dic/shared/surface_points.hpp>

/// Strain in the tangent plane of a surface, for CPU and GPU. See surface_strain() for the method.
namespace dic::stereo {

/// Derivatives of a position along two directions.
using Tangents = SmallMatrix<3, 2>;

/// Orthonormal axes of the tangent plane.
struct TangentFrame {
  Tangents axes;       ///< x: the x axis of the measurement along the surface; y: perpendicular to it
  Matrix2 from_nodes;  ///< derivatives along the axes from those along the grid, nodes per mm: row by row

  /// along_grid: derivatives along its rows and columns, mm per node.
  DIC_HOST_DEVICE explicit TangentFrame(const Tangents& along_grid) {
    const Vector3 across = cross(along_grid.columns<1>(0), along_grid.columns<1>(1));
    const Vector3 normal = (1 / norm(across)) * across;
    Vector3 x = vector3(1, 0, 0) - normal[0] * normal;
    x = (1 / norm(x)) * x;
    const Vector3 y = cross(normal, x);
    for (int i = 0; i < 3; ++i) axes(i, 0) = x[i], axes(i, 1) = y[i];
    from_nodes = inverse(axes.transposed() * along_grid).transposed();
  }
  DIC_HOST_DEVICE bool exists() const { return axes.is_finite() && from_nodes.is_finite(); }
};

/// (C - I) / 2 without the 1s that would cancel; gradient: that of the displacement along the axes.
DIC_HOST_DEVICE inline Matrix2 green_lagrange(const Tangents& axes, const Tangents& gradient) {
  const Matrix2 half = axes.transposed() * gradient;
  return 0.5 * (half + half.transposed() + gradient.transposed() * gradient);
}

DIC_HOST_DEVICE inline strain::Tensor tensor_of(const Matrix2& m) {
  return {m(0, 0), m(1, 1), (m(0, 1) + m(1, 0)) / 2};
}

DIC_HOST_DEVICE inline strain::Tensor strain_of(const TangentFrame& frame, const Tangents& gradient,
                                                StrainMeasure measure) {
  const Matrix2 green = green_lagrange(frame.axes, gradient);
  const Matrix2 stretch = Matrix2::identity() + 2 * green;  // C: positive definite but for folded material
  const double det = determinant(stretch);
  switch (measure) {
    case StrainMeasure::engineering:
      return tensor_of(frame.axes.transposed() * gradient);
    case StrainMeasure::green_lagrange:
      return tensor_of(green);
    case StrainMeasure::hencky:
      if (det > 0) return strain::hencky(tensor_of(stretch), std::sqrt(det));
      break;
    case StrainMeasure::almansi:
      if (det > 0) return tensor_of(inverse(stretch) * green);
      break;
  }
  return {strain::missing, strain::missing, strain::missing};
}

/// Factors from a change of the Green-Lagrange strain to one of the measure, for the normal strains.
DIC_HOST_DEVICE inline Vector2 change_of(const TangentFrame& frame, const Tangents& gradient,
                                         StrainMeasure measure) {
  const Matrix2 green = green_lagrange(frame.axes, gradient);
  const double x = 1 / (1 + 2 * green(0, 0)), y = 1 / (1 + 2 * green(1, 1));
  if (measure == StrainMeasure::hencky) return vector2(x, y);
  if (measure == StrainMeasure::almansi) return vector2(x * x, y * y);
  return vector2(1, 1);
}

/// How alike errors of neighbours are in the images of one camera.
struct SlopeErrors {
  strain::ErrorCorrelation correlation;
  strain::SlopeCovariance complete;

  SlopeErrors(const MeasuredSubsets& subsets, int step, int window)
      : correlation(subsets, step, window),
        complete(strain::complete_window_covariance(correlation, window)) {}

  /// Covariance of the derivatives along rows and columns of the grid, per node^2, for errors of variance 1.
  DIC_HOST_DEVICE Matrix2 of(const strain::SlopeCovariance& per_px) const {
    const double square_px = 1 / double(correlation.per_square_px);
    return matrix2(per_px.xx * square_px, per_px.xy * square_px, per_px.xy * square_px,
                   per_px.yy * square_px);
  }
};

/// The window of a node.
struct StrainWindow {
  bool is_complete = false;
  double n = 0, xx = 0, xy = 0, yy = 0;  ///< number of nodes, their central second moments
  Tangents before, change;  ///< derivatives of position and displacement along the grid, mm per node

  DIC_HOST_DEVICE Matrix2 slopes(const SlopeErrors& errors) const {
    return errors.of(is_complete ? errors.complete
                                 : strain::partial_window_covariance(errors.correlation, n, xx, xy, yy));
  }
};

/// The strain of nodes. kMost: largest side of the window that it can do, see ConnectedNodes.
template <int kMost>
struct SurfaceStrain {
  SurfaceJob job;
  StrainMeasure measure;
  int window;             ///< side of the window, nodes
  double complete_scale;  ///< strain::complete_window_scale per node
  SlopeErrors left, right;

  SurfaceStrain(const SurfaceJob& points, const StrainOptions& options, const MeasuredSubsets& left_subsets,
                const MeasuredSubsets& right_subsets)
      : job(points),
        measure(options.measure),
        window(options.window),
        complete_scale(strain::complete_window_scale(options.window, 1)),
        left(left_subsets, points.grid.step, options.window),
        right(right_subsets, points.grid.step, options.window) {}

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    StrainWindow nodes;
    if (!job.has_values(k) || !collect(k, nodes)) return clear(k);
    const TangentFrame frame(nodes.before);
    if (!frame.exists()) return clear(k);
    const Tangents gradient = nodes.change * frame.from_nodes.transposed();
    const SurfaceArrays& out = job.out;
    const strain::Values values = strain::values_of(strain_of(frame, gradient, measure));
    out.exx[k] = values.exx, out.eyy[k] = values.eyy, out.exy[k] = values.exy;
    out.e1[k] = values.e1, out.e2[k] = values.e2, out.von_mises[k] = values.von_mises;
    const strain::Tensor variances = variances_at(k, nodes, frame, gradient);
    const Vector2 change = change_of(frame, gradient, measure);
    out.sigma_exx[k] = static_cast<float>(change[0] * std::sqrt(variances.xx));
    out.sigma_eyy[k] = static_cast<float>(change[1] * std::sqrt(variances.yy));
    out.sigma_exy[k] = static_cast<float>(std::sqrt(change[0] * change[1] * variances.xy));
  }

 private:
  DIC_HOST_DEVICE void clear(std::int64_t k) const {
    constexpr auto none = std::numeric_limits<float>::quiet_NaN();
    const SurfaceArrays& a = job.out;
    float* const all[] = {a.exx,       a.eyy,       a.exy,       a.e1,       a.e2,
                          a.von_mises, a.sigma_exx, a.sigma_eyy, a.sigma_exy};
    for (float* values : all) values[k] = none;
  }

  DIC_HOST_DEVICE bool is_complete(std::int64_t k) const {
    const int half = window / 2, i = job.grid.column(k), j = job.grid.row(k);
    if (i < half || j < half || i + half >= job.grid.nx || j + half >= job.grid.ny) return false;
    for (int dj = -half; dj <= half; ++dj) {
      const std::uint8_t* const row = job.out.usable + k + std::int64_t{dj} * job.grid.nx;
      for (int di = -half; di <= half; ++di)
        if (!row[di]) return false;
    }
    return true;
  }

  /// False if the window has too few nodes.
  DIC_HOST_DEVICE bool collect(std::int64_t k, StrainWindow& nodes) const {
    nodes.is_complete = is_complete(k);
    if (!nodes.is_complete) return collect_part(k, nodes);
    const int half = window / 2;
    nodes.before = nodes.change = Tangents::zero();
    for (int dj = -half; dj <= half; ++dj)
      for (int di = -half; di <= half; ++di) add(k + std::int64_t{dj} * job.grid.nx + di, di, dj, nodes);
    nodes.before = complete_scale * nodes.before, nodes.change = complete_scale * nodes.change;
    return true;
  }
  DIC_HOST_DEVICE void add(std::int64_t node, double x, double y, StrainWindow& nodes) const {
    const Vector3 &position = job.reference.position[node], &displacement = job.out.displacement[node];
    for (int c = 0; c < 3; ++c) {
      nodes.before(c, 0) += x * position[c], nodes.before(c, 1) += y * position[c];
      nodes.change(c, 0) += x * displacement[c], nodes.change(c, 1) += y * displacement[c];
    }
  }

  DIC_HOST_DEVICE bool collect_part(std::int64_t k, StrainWindow& nodes) const {
    if (!job.out.usable[k]) return false;
    const ConnectedNodes<kMost> connected(job.grid, job.out.usable, k, window);
    strain::NodeMoments moments;
    connected.for_each([&](double x, double y, std::int64_t) {
      moments.n += 1, moments.x += x, moments.y += y;
      moments.xx += x * x, moments.xy += x * y, moments.yy += y * y;
    });
    if (!strain::PartialPlane::has_enough(moments.n, window)) return false;
    const strain::PartialPlane plane(moments, 1);
    nodes.n = moments.n, nodes.xx = plane.xx(), nodes.xy = plane.xy(), nodes.yy = plane.yy();
    nodes.before = nodes.change = Tangents::zero();
    // Distances from the mean of the nodes, so that sums of values times them are those of differences.
    const double mean_x = moments.x / moments.n, mean_y = moments.y / moments.n;
    connected.for_each(
        [&](double x, double y, std::int64_t node) { add(node, x - mean_x, y - mean_y, nodes); });
    const double scale = 1 / (nodes.xx * nodes.yy - nodes.xy * nodes.xy);
    const Matrix2 to_slopes =
        matrix2(nodes.yy * scale, -nodes.xy * scale, -nodes.xy * scale, nodes.xx * scale);
    nodes.before = nodes.before * to_slopes, nodes.change = nodes.change * to_slopes;
    return true;
  }

  /// Variances of xx, yy, xy of the Green-Lagrange strain. Its xx is the derivative along x of the part of
  /// the errors along the x axis, now along the deformed one and before along the original one, and so on.
  /// Order 2 adds errors to those of order 1 that are less alike at neighbours, so that the parts of both
  /// cameras enter the slopes differently; what they share is like the errors of order 1.
  DIC_HOST_DEVICE strain::Tensor variances_at(std::int64_t k, const StrainWindow& nodes,
                                              const TangentFrame& frame, const Tangents& gradient) const {
    const Matrix2 left_slopes = nodes.slopes(left), all = along(k, job.out.errors[k], frame, gradient);
    if (!job.out.right_errors) return with_slopes(all, left_slopes, frame);
    const Matrix2 of_right = along(k, job.out.right_errors[k], frame, gradient);
    const strain::Tensor one = with_slopes(of_right, nodes.slopes(right), frame),
                         other = with_slopes(all - of_right, left_slopes, frame);
    const auto sum = [](double a, double b) { return a + b > 0 ? a + b : 0; };
    return {sum(one.xx, other.xx), sum(one.yy, other.yy), sum(one.xy, other.xy)};
  }
  /// Covariance of the errors along the axes, now along the deformed and before along the original ones.
  DIC_HOST_DEVICE Matrix2 along(std::int64_t k, const PointErrors& errors, const TangentFrame& frame,
                                const Tangents& gradient) const {
    const float* const before = job.reference.covariance + 6 * k;
    Matrix3 of_now, of_before, across;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        of_now(i, j) = errors.now_at(i, j), across(i, j) = errors.across_at(i, j);
        of_before(i, j) = double(before[i == j ? i : i + j + 2]);
      }
    const Tangents now = frame.axes + gradient;
    const Matrix2 mixed = now.transposed() * (across * frame.axes);
    return now.transposed() * (of_now * now) + frame.axes.transposed() * (of_before * frame.axes) - mixed -
           mixed.transposed();
  }
  DIC_HOST_DEVICE static strain::Tensor with_slopes(const Matrix2& v, const Matrix2& slopes,
                                                    const TangentFrame& frame) {
    const Matrix2 s = frame.from_nodes * slopes * frame.from_nodes.transposed();
    return {v(0, 0) * s(0, 0), v(1, 1) * s(1, 1),
            (v(1, 1) * s(0, 0) + v(0, 0) * s(1, 1) + 2 * v(0, 1) * s(0, 1)) / 4};
  }
};

/// Finds what windows and subsets flatten, when all nodes have a strain. Rows and columns of the grid stand
/// for the axes of the strain: a rotated tangent frame mixes components whose errors are of one size.
struct SurfaceFlattening {
  SurfaceJob job;
  strain::Flattening flattening;

  SurfaceFlattening(const SurfaceJob& points, const StrainOptions& options, const MeasuredSubsets& subsets)
      : job(points), flattening(subsets, points.grid.step, options.window) {}

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const SurfaceArrays& out = job.out;
    out.flattened[k] = strain::no_squares();
    if (std::isnan(out.exx[k])) return;
    const int i = job.grid.column(k), j = job.grid.row(k);
    const auto in_grid = [&](int di, int dj) {
      return i + di >= 0 && i + di < job.grid.nx && j + dj >= 0 && j + dj < job.grid.ny;
    };
    const auto node = [&](int di, int dj) { return k + std::int64_t{dj} * job.grid.nx + di; };
    const strain::Reach reach(
        flattening.half, [&](int di, int dj) { return in_grid(di, dj) && out.usable[node(di, dj)] != 0; });
    const auto at = [&](int di, int dj) -> strain::Components {
      if (!in_grid(di, dj)) return strain::no_components();
      const std::int64_t n = node(di, dj);
      return {out.exx[n], out.eyy[n], out.exy[n]};
    };
    out.flattened[k] =
        strain::flattening_of({out.sigma_exx[k], out.sigma_eyy[k], out.sigma_exy[k]}, flattening, reach, at);
  }
};

/// Adds what windows and subsets flatten to the sigmas of a strain.
struct FlattenedSigmas {
  SurfaceJob job;
  strain::Flattening flattening;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const SurfaceArrays& out = job.out;
    if (std::isnan(out.exx[k])) return;
    const int i = job.grid.column(k), j = job.grid.row(k);
    const strain::Sigmas sigmas = strain::with_flattening(
        {out.sigma_exx[k], out.sigma_eyy[k], out.sigma_exy[k]}, flattening, [&](int di, int dj) {
          if (i + di < 0 || i + di >= job.grid.nx || j + dj < 0 || j + dj >= job.grid.ny)
            return strain::no_squares();
          return out.flattened[k + std::int64_t{dj} * job.grid.nx + di];
        });
    out.sigma_exx[k] = sigmas.exx, out.sigma_eyy[k] = sigmas.eyy, out.sigma_exy[k] = sigmas.exy;
  }
};

}  // namespace dic::stereo

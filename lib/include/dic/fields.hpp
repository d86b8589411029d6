#pragma once

#include <array>
#include <cstdint>
#include <dic/export.hpp>
#include <dic/node_values.hpp>
#include <dic/shared/field_options.hpp>  // StrainOptions, MeasuredSubsets, OutlierOptions
#include <dic/shared/status.hpp>         // Status
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace dic {

/// The name of the enumerator.

/// The grid of points: nodes at (x0 + i*step, y0 + j*step), i < nx, j < ny, reference pixels.
/// (x0, y0) is the top-left corner of the ROI's bounding box.
struct Grid {
  int x0 = 0, y0 = 0;
  int step = 1;
  int nx = 0, ny = 0;
  std::vector<std::uint8_t> inside;  ///< ny x nx: 1 where the node is inside the ROI

  int x(int i) const { return x0 + i * step; }
  int y(int j) const { return y0 + j * step; }
  std::int64_t nodes() const { return static_cast<std::int64_t>(nx) * ny; }
  /// Nodes inside the ROI: the rows of every output.
  DIC_API std::int64_t points() const;
  bool operator==(const Grid&) const = default;
};

/// Positions of the nodes, [ny x nx], px.
struct NodePositions {
  NodeValues<double> x, y;
};

/// Strain at every node, [ny x nx], dimensionless; NaN where it could not be computed.
struct StrainField {
  NodeValues<float> exx, eyy, exy;                    ///< exy: tensor shear (half of gamma)
  NodeValues<float> e1, e2;                           ///< principal strains, e1 >= e2
  NodeValues<float> von_mises;                        ///< sqrt(exx^2 + eyy^2 - exx*eyy + 3*exy^2)
  NodeValues<float> sigma_exx, sigma_eyy, sigma_exy;  ///< predicted standard deviations of the errors
};

/// Measurements of two cameras at every node, [ny x nx]; NaN where it could not be computed. Positions and
/// displacements are in the axes of the measurement (dic/stereo.hpp).
struct StereoField {
  NodeValues<double> x, y, z;                   ///< position of the point in the reference, mm
  NodeValues<double> u, v, w;                   ///< its displacement, mm
  NodeValues<float> sigma_x, sigma_y, sigma_z;  ///< predicted standard deviations from the noise, mm
  NodeValues<float> sigma_u, sigma_v, sigma_w;  ///< the same for the displacement, mm
  /// Predicted standard deviations of position and displacement from the calibration alone, mm: an error
  /// that is common to all points. NaN if the calibration has no covariance.
  NodeValues<float> calibration_sigma_x, calibration_sigma_y, calibration_sigma_z;
  NodeValues<float> calibration_sigma_u, calibration_sigma_v, calibration_sigma_w;
  /// Distance of the point in the right image from the epipolar line of the point in the left image, with a
  /// sign, px of the right image.
  NodeValues<float> epipolar;
  /// Root mean square distance, px, of the points in both images from the projections of the position.
  NodeValues<float> reprojection;
  /// Angle between the normal of the surface and the line of sight of the camera that sees it more obliquely,
  /// degrees.
  NodeValues<float> incidence;
};

/// The measurement of one current frame, arrays [ny x nx] row-major; NaN plus a status where it failed. Nodes
/// outside the ROI are NaN and `masked`.
class Field {
 public:
  NodeValues<double> u, v;             ///< displacement from reference to current, px
  NodeValues<float> zncc;              ///< correlation of the refined subset, [-1, 1]
  NodeValues<float> sigma_u, sigma_v;  ///< predicted standard deviation of u, v from the noise, px
  NodeValues<Status> status;
  NodeValues<std::int16_t> iterations;  ///< Gauss-Newton iterations
  StrainField strain;                   ///< empty arrays until computed
  StereoField stereo;                   ///< empty arrays with one camera
  /// Order of each point's shape function, 0 where nothing was measured. Empty: the order in the options.
  NodeValues<std::uint8_t> order;
  /// The resolution that the global step chose, and the sigma of the subsets before it, px. Empty without it.
  NodeValues<float> resolution, subset_sigma_u, subset_sigma_v;
  /// Nodes in corrected coordinates (dic/camera.hpp) if there is a camera; u, v, sigma and strain are then in
  /// these coordinates too. Null: the nodes are at the positions of the grid.
  std::shared_ptr<const NodePositions> positions;
  /// Displacement in the image, px, if there is a camera. Empty: u and v are the displacement in the image.
  NodeValues<double> image_u, image_v;

  /// A field on a grid without nodes.
  Field() = default;
  /// A field whose nodes are all NaN and `masked`.
  DIC_API explicit Field(std::shared_ptr<const Grid> grid);
  DIC_API explicit Field(Grid grid);
  /// A field with empty arrays, to take over existing memory of grid->nodes() values each.
  DIC_API static Field without_arrays(std::shared_ptr<const Grid> grid);

  /// The grid whose nodes the arrays belong to.
  DIC_API const Grid& grid() const;
  /// The same grid, shared; null for a field on a grid without nodes.
  const std::shared_ptr<const Grid>& shared_grid() const { return grid_; }
  /// Position of a node, px; in corrected coordinates if the field has them.
  double x(int i, int j) const { return positions ? positions->x[node(i, j)] : grid().x(i); }
  double y(int i, int j) const { return positions ? positions->y[node(i, j)] : grid().y(j); }
  /// Number of points inside the ROI with each status.
  DIC_API std::array<std::int64_t, kStatusCount> counts() const;

 private:
  std::size_t node(int i, int j) const { return static_cast<std::size_t>(j) * grid().nx + i; }

  std::shared_ptr<const Grid> grid_;
};

/// Strain by a least-squares plane through u and v over a window of points (Pan et al., "Full-field strain
/// measurement using a two-dimensional Savitzky-Golay digital differentiator", 2007; here without missing
/// points). The fit takes the `ok` nodes inside the ROI that are connected to the centre, inside the window,
/// by steps to one of four neighbours, so that neither a hole nor a crack of missing points is bridged. A
/// node with values (also an outlier, although outliers enter no fit) gets a strain if the fit has at least
/// half of the nodes of a full window; other nodes are NaN. In a corrected field the gradient is that of u
/// and v over that of the positions, both fitted to the same nodes: exact for every affine motion. threads: 0
/// = one per core. Throws UsageError for options with problems.
///
/// The standard deviations of the strain follow from sigma_u and sigma_v, the pixels that subsets share, and
/// what windows and subsets flatten of a strain that varies; without `subsets` they are NaN. Field::order,
/// where set, overrides the order of `subsets`.
DIC_API StrainField compute_strain(const Field& field, const StrainOptions& options = {}, int threads = 0,
                                   const std::optional<MeasuredSubsets>& subsets = {});

/// Independent random draws of the errors that noise may cause in a displacement field, each [ny x nx], for u
/// and v alike. They tell how the errors of different nodes are correlated, not how large they are.
struct ErrorDraws {
  std::vector<NodeValues<float>> draws;  ///< an even number of draws; 0 at points without an error
};
/// Strain of a field whose errors are not those of single subsets, for example after the global step.
DIC_API StrainField compute_strain(const Field& field, const StrainOptions& options, int threads,
                                   const ErrorDraws& errors);

/// Strain components from the displacement gradient (row-major du/dx, du/dy, dv/dx, dv/dy): returns {exx,
/// eyy, exy} of the measure. Almansi strain refers to the current, Hencky strain to the reference
/// configuration: e = (I - F^-T F^-1)/2, ln U = ln(F^T F)/2; both are NaN where det F <= 0 (folded material).
DIC_API std::array<double, 3> strain_from_gradient(const std::array<double, 4>& gradient,
                                                   StrainMeasure measure);

/// Marks `ok` points as `outlier` by the normalized median test of Westerweel & Scarano, "Universal outlier
/// detection for PIV data" (2005), applied to the eight neighbours and to residuals from a local plane
/// (median slopes), so that strain and rotation do not trigger it. Points with fewer than three neighbours
/// are not tested. Returns the number of marked points. threads: 0 = one per core.
DIC_API std::int64_t mark_outliers(Field& field, const OutlierOptions& options = {}, int threads = 0);

}  // namespace dic

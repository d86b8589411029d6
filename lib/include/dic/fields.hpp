#pragma once

#include <array>
#include <cstdint>
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
  std::int64_t points() const;
  bool operator==(const Grid&) const = default;
};

/// Where the nodes are, [ny x nx], px.
struct NodePositions {
  NodeValues<double> x, y;
};

/// Strain of every node, [ny x nx]; NaN where it could not be computed.
struct StrainField {
  NodeValues<float> exx, eyy, exy;                    ///< exy: tensor shear (half of gamma)
  NodeValues<float> e1, e2;                           ///< principal strains, e1 >= e2
  NodeValues<float> von_mises;                        ///< sqrt(exx^2 + eyy^2 - exx*eyy + 3*exy^2)
  NodeValues<float> sigma_exx, sigma_eyy, sigma_exy;  ///< predicted standard deviations from the noise
};

/// What was measured in one current frame, arrays [ny x nx] row-major; NaN plus a status where it failed.
/// Nodes outside the ROI are NaN and `masked`.
class Field {
 public:
  NodeValues<double> u, v;             ///< displacement from reference to current, px
  NodeValues<float> zncc;              ///< of the refined subset, [-1, 1]
  NodeValues<float> sigma_u, sigma_v;  ///< predicted standard deviation of u, v from the noise, px
  NodeValues<Status> status;
  NodeValues<std::int16_t> iterations;  ///< Gauss-Newton iterations
  StrainField strain;                   ///< empty arrays until computed
  /// Order of each point's shape function, 0 where nothing was measured. Empty: that of the options.
  NodeValues<std::uint8_t> order;
  /// After the global step: the resolution that it took, and sigma of the subsets before it, px. Else empty.
  NodeValues<float> resolution, subset_sigma_u, subset_sigma_v;
  /// With a camera, the nodes in corrected coordinates (dic/camera.hpp): u, v, sigma and strain are theirs
  /// too. Null: the nodes are where the grid says.
  std::shared_ptr<const NodePositions> positions;
  /// With a camera, the displacement in the image, px. Empty: u and v are that.
  NodeValues<double> image_u, image_v;

  /// On a grid without nodes.
  Field() = default;
  /// Every node is NaN and `masked`.
  explicit Field(std::shared_ptr<const Grid> grid);
  explicit Field(Grid grid);
  /// The arrays are empty: for values that are in memory already, of grid->nodes() each.
  static Field without_arrays(std::shared_ptr<const Grid> grid);

  /// The nodes that the arrays belong to.
  const Grid& grid() const;
  /// The same; null for a field on a grid without nodes.
  const std::shared_ptr<const Grid>& shared_grid() const { return grid_; }
  /// Position of a node, px: in corrected coordinates, if the field is.
  double x(int i, int j) const { return positions ? positions->x[node(i, j)] : grid().x(i); }
  double y(int i, int j) const { return positions ? positions->y[node(i, j)] : grid().y(j); }
  /// Points inside the ROI by status.
  std::array<std::int64_t, kStatusCount> counts() const;

 private:
  std::size_t node(int i, int j) const { return static_cast<std::size_t>(j) * grid().nx + i; }

  std::shared_ptr<const Grid> grid_;
};

/// Strain by a least-squares plane through u and v over a window of points (Pan et al., "Full-field strain
/// measurement using a two-dimensional Savitzky-Golay digital differentiator", 2007; here with missing points
/// left out). The fit takes `ok` nodes inside the ROI that are connected to the centre by steps to one of
/// four neighbours inside the window, so that neither a hole nor a crack of missing points is bridged. A node
/// with values (outliers too, though they enter no fit) whose window holds at least half of its nodes gets a
/// strain; the others are NaN. In a corrected field the gradient is that of u and v over that of the
/// positions, both fitted to the same nodes: exact for every affine motion. threads: 0 = one per core. Throws
/// UsageError for options with problems.
///
/// Its standard deviations follow from sigma_u and sigma_v and from the pixels that the subsets of different
/// nodes share: without `subsets` they are NaN. The order is that of the points where the field knows it.
StrainField compute_strain(const Field& field, const StrainOptions& options = {}, int threads = 0,
                           const std::optional<MeasuredSubsets>& subsets = {});

/// Errors of a displacement field as noise may have made them: draws that are independent of each other, each
/// [ny x nx], for u and v alike. They tell how the errors of different nodes are related, not how large they
/// are.
struct ErrorDraws {
  std::vector<NodeValues<float>> draws;  ///< an even number of them; 0 where a point takes no part
};
/// The same where errors are not those of single subsets, as after the global step.
StrainField compute_strain(const Field& field, const StrainOptions& options, int threads,
                           const ErrorDraws& errors);

/// Strain components from the displacement gradient (row-major du/dx, du/dy, dv/dx, dv/dy):
/// returns {exx, eyy, exy} of the measure. Almansi and Hencky refer to the current and the reference
/// configuration as in their definitions: e = (I - F^-T F^-1)/2, ln U = ln(F^T F)/2; both are NaN where
/// det F <= 0 (folded material).
std::array<double, 3> strain_from_gradient(const std::array<double, 4>& gradient, StrainMeasure measure);

/// Marks `ok` points as `outlier` by the normalized median test of Westerweel & Scarano, "Universal outlier
/// detection for PIV data" (2005), with the eight neighbours and on residuals from a local plane (median
/// slopes) so that strain and rotation do not trigger it. Points with fewer than three neighbours are not
/// tested. Returns how many it marked. threads: 0 = one per core.
std::int64_t mark_outliers(Field& field, const OutlierOptions& options = {}, int threads = 0);

}  // namespace dic

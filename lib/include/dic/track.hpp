#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <dic/camera.hpp>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/global.hpp>
#include <dic/image.hpp>
#include <dic/refine.hpp>
#include <dic/shared/enum_names.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dic {

/// The image that a current frame is compared with.
enum class ReferenceStrategy : std::uint8_t {
  first,     ///< always the reference: no accumulated error
  previous,  ///< the frame before: follows any total deformation, errors add up
  automatic  ///< the reference until too many points are lost, then the last good frame becomes the reference
};
template <>
struct EnumNames<ReferenceStrategy> {
  static constexpr EnumName<ReferenceStrategy> table[] = {{ReferenceStrategy::first, "first"},
                                                          {ReferenceStrategy::previous, "previous"},
                                                          {ReferenceStrategy::automatic, "auto"}};
};

/// Rows of nodes of a grid: first, first + 1, ..., first + count - 1.
struct GridRows {
  int first = 0, count = 0;
  bool operator==(const GridRows&) const = default;
};

struct TrackOptions {
  RefineOptions refine;
  int step = 5;  ///< distance between points, px, >= 1
  /// Measures only these rows of the grid, with the same results as among all rows: options that are chosen
  /// from the reference are chosen for the whole grid. No value: all rows.
  std::optional<GridRows> rows;
  /// Search range in px around the prediction (the first frame: around zero), 0 to 4096; none = automatic,
  /// coarse to fine.
  std::optional<int> search;
  ReferenceStrategy reference_strategy = ReferenceStrategy::first;
  /// Noise of the images in grey levels, for sigma_u and sigma_v; none = estimated from the residuals of each
  /// frame.
  std::optional<double> noise;
  OutlierOptions outliers;
  GlobalOptions global;  ///< the global step, after outliers and before strain; always on the CPU
  StrainOptions strain;
  /// Measures points whose subset does not move as one, or partly leaves the current image, with the part of
  /// the subset that belongs to them.
  bool split = true;
  /// Gives results in coordinates without lens distortion and perspective, always computed on the CPU. Grid,
  /// ROI and search stay in image pixels.
  std::optional<Camera> camera;
  /// cpu, cuda (the first GPU), cuda:N, several as in cuda:0,2, cuda:all, or auto: a GPU if there is one and
  /// the points are worth its start.
  std::string device = "auto";
  int threads = 0;  ///< number of threads; 0 = one per core
  /// Memory that images may take on each GPU, MB; 0 = all free memory. Larger images are measured in bands of
  /// rows, with the same result.
  int gpu_memory = 0;
  /// Standard deviation, px, of a Gaussian low-pass that is applied to all images first, 0.3 to 5; 0 = none.
  /// No value: chosen from the reference, none unless it lowers the predicted sigma by a tenth.
  std::optional<double> prefilter;
  /// Subtracts the bias of the interpolation, predicted from the power spectrum of the reference. Off,
  /// because strain is then computed again on the CPU. Needs the strategy `first`.
  bool anti_bias = false;
  /// Measures with order 1 and order 2, regardless of refine.order, and chooses between them at every point
  /// by whether noise explains their difference. Off, because it costs as much as both.
  bool automatic_order = false;
  /// Demanded sigma, px, above 0: refine.subset becomes the smallest one, 11 to 101 px, whose sigma,
  /// predicted from the reference and its noise, is below this at nine of ten points. No value: refine.subset
  /// stays.
  std::optional<double> sigma_target;
  /// Adds the state that TrackStream::restore needs to each result.
  bool keep_state = false;
  /// Number of frames to come, for the device `auto`: a few are measured on the CPU before a GPU is ready.
  /// After the last of them, the CPU keeps no starts for another frame. 0 = unknown.
  std::int64_t expected_frames = 0;
  /// Counts in sigma that a field bends within the subsets. Off where the caller subtracts that bias.
  bool bending_in_sigma = true;
  /// Returns one sentence per problem; empty if the options are valid.
  DIC_API std::vector<std::string> validate() const;
};

/// Region of interest. Default: the whole frame. Parts combine: inside = (mask and rectangle and any polygon)
/// and no hole.
struct Roi {
  struct Rect {
    int x = 0, y = 0, width = 0, height = 0;  ///< px; covers x .. x+width-1
  };
  struct Vertex {
    double x = 0, y = 0;
  };
  using Polygon = std::vector<Vertex>;
  Image mask;  ///< u8 (or u16), the reference's size; inside if not zero; empty = no mask
  std::optional<Rect> rect;
  std::vector<Polygon> polygons;  ///< a pixel is inside where its centre is inside or on the outline
  std::vector<Polygon> holes;
  /// Positions, px: only the nodes between which they lie are measured, one for a position on a node, else two
  /// or four. Empty: all nodes inside. Subsets take their pixels from the whole region all the same.
  std::vector<Vertex> points;
};
/// The ROI as a u8 mask (0 or 255) of an image of this size. Throws UsageError: wrong size, outside the
/// image, empty.
DIC_API Image rasterize(const Roi& roi, Size image);
/// The grid of points over a u8 mask that is not empty. Throws UsageError for a step below 1 px.
DIC_API Grid make_grid(ImageView roi_mask, int step);
/// The part of a grid that Roi::points need, with the same node positions; the grid itself without positions.
/// Throws UsageError for a position that does not lie between nodes inside the region.
DIC_API Grid grid_around(const Grid& grid, const std::vector<Roi::Vertex>& points);

/// Seconds by stage, summed over frames. Stages of different frames overlap: `total` may be less than the
/// sum.
struct StageSeconds {
  double load = 0, prepare = 0, search = 0, refine = 0, strain = 0, write = 0, total = 0;

  double measuring() const { return prepare + search + refine + strain; }
  DIC_API StageSeconds& operator+=(const StageSeconds& other);
};

/// Time span in which a stage worked on a frame. The work of a GPU is timed by its own clock.
struct StageSpan {
  using Time = std::chrono::steady_clock::time_point;
  /// "decode", "copy" (of the pixels, by the host), "upload", "prefilter", "search", "refine", "global",
  /// "strain", "download", "write".
  std::string stage;
  Time begin, end;
};

/// The measurement of one frame.
struct FrameResult {
  std::int64_t index = 0;  ///< number of the frame, from 0 on, among the frames of one reference
  /// Displacement, statuses, strain. It has no nodes after an error. A field from a GPU lies in memory that
  /// is reused for a later frame when the field is destroyed.
  Field field;
  double noise = 0;              ///< noise of the images, grey levels: see TrackOptions::noise
  StageSeconds seconds;          ///< seconds of the stages prepare, search, refine, strain
  std::vector<StageSpan> spans;  ///< time spans of the stages
  double latency = 0;            ///< seconds from the call of track or push to the result
  std::string error;             ///< why a stream could not measure the frame, one sentence; empty = measured
  std::vector<std::byte> state;  ///< state for TrackStream::restore; empty without TrackOptions::keep_state
};

/// Tracks the points of one reference through a sequence of current frames, in constant memory.
/// The calls of one Tracker must not overlap; Trackers are independent of each other.
class Tracker {
 public:
  /// Throws UsageError (options, sizes, ROI), DeviceError.
  DIC_API Tracker(const TrackOptions& options, ImageView reference, const Roi& roi = {});
  DIC_API ~Tracker();
  DIC_API Tracker(Tracker&&) noexcept;
  DIC_API Tracker& operator=(Tracker&&) noexcept;

  DIC_API const Grid& grid() const;
  /// Measures the next frame. Throws UsageError if size or type differ from the reference, DeviceError,
  /// Cancelled.
  DIC_API FrameResult track(ImageView current, std::stop_token stop = {});
  /// Correlation variants and SIMD targets that ran.
  DIC_API std::vector<std::string> kernels() const;
  /// Name of the device: "cpu", or number and name of the GPU, such as "cuda:0, NVIDIA H100 80GB HBM3".
  DIC_API std::string device() const;
  /// Why the device was chosen, one sentence; a second one if images are measured in bands of rows.
  DIC_API std::string device_reason() const;
  /// Seconds that preparing the reference took.
  DIC_API double prepare_seconds() const;
  /// The options, including those chosen from the reference: prefilter and refine.subset.
  DIC_API TrackOptions options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <dic/camera.hpp>
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

/// Which image a current frame is compared with.
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
  int step = 5;  ///< px between points, >= 1
  /// Measures these rows of the grid alone, as they are measured among all: what is chosen from the reference
  /// is chosen for the whole grid. No value: all.
  std::optional<GridRows> rows;
  /// Search range in px around the prediction (the first frame: around zero), 0 to 4096; none = automatic,
  /// coarse to fine.
  std::optional<int> search;
  ReferenceStrategy reference_strategy = ReferenceStrategy::first;
  /// Noise of the images in grey levels, for sigma_u and sigma_v; none = estimated from the residuals of each
  /// frame.
  std::optional<double> noise;
  OutlierOptions outliers;
  GlobalOptions global;  ///< after outliers, before strain; on the CPU, whatever measured the subsets
  StrainOptions strain;
  /// Measures points whose subset does not move as one, or leaves the current image in part, with the part
  /// that belongs to them.
  bool split = true;
  /// Results in coordinates without lens distortion and perspective; on the CPU, whatever measured the
  /// subsets. Grid, ROI and search stay in image pixels.
  std::optional<Camera> camera;
  /// cpu, cuda (the first GPU), cuda:N, several as in cuda:0,2, cuda:all, or auto: a GPU where there is one
  /// and the points are worth its start.
  std::string device = "auto";
  int threads = 0;  ///< 0 = one per core
  /// Memory that the images may take on each GPU, MB; 0 = what is free. Larger ones are measured in bands
  /// of rows, with the same result.
  int gpu_memory = 0;
  /// Standard deviation, px, of a Gaussian low-pass of all images before anything else, 0.3 to 5; 0 = none.
  /// No value: chosen from the reference, none unless it lowers the predicted sigma by a tenth.
  std::optional<double> prefilter;
  /// Subtracts the bias of the interpolation, predicted from the power spectrum of the reference. Off,
  /// because strain is then computed again on the CPU. Needs the strategy `first`.
  bool anti_bias = false;
  /// Measures with order 1 and order 2, whatever refine.order says, and chooses between them at every point
  /// by what noise explains. Off, because it takes the time of both.
  bool automatic_order = false;
  /// px, above 0: refine.subset becomes the smallest one, 11 to 101 px, whose predicted sigma is below this
  /// at nine of ten points, from the reference and its noise. No value: refine.subset stays.
  std::optional<double> sigma_target;
  /// Results get what TrackStream::restore needs.
  bool keep_state = false;
  /// How many frames will come, for the device `auto`: a few are measured on the CPU before a GPU is ready.
  /// After so many, the CPU keeps no starts for another one. 0 = unknown, some.
  std::int64_t expected_frames = 0;
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
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
  Image mask;  ///< u8 (or u16), the reference's size; inside where not zero; empty = none
  std::optional<Rect> rect;
  std::vector<Polygon> polygons;  ///< a pixel is inside where its centre is inside or on the outline
  std::vector<Polygon> holes;
};
/// The ROI as a u8 mask (0 or 255) of an image of this size. Throws UsageError: wrong size, outside the
/// image, empty.
Image rasterize(const Roi& roi, Size image);
/// The grid of points over a u8 mask that is not empty. Throws UsageError for a step below 1 px.
Grid make_grid(ImageView roi_mask, int step);

/// Seconds by stage, summed over frames. Stages of different frames overlap: `total` may be less than the
/// sum.
struct StageSeconds {
  double load = 0, prepare = 0, search = 0, refine = 0, strain = 0, write = 0, total = 0;

  double measuring() const { return prepare + search + refine + strain; }
  StageSeconds& operator+=(const StageSeconds& other);
};

/// When a stage worked on a frame. What a GPU did is timed by its own clock.
struct StageSpan {
  using Time = std::chrono::steady_clock::time_point;
  /// "decode", "copy" (of the pixels, by the host), "upload", "prefilter", "search", "refine", "global",
  /// "strain", "download", "write".
  std::string stage;
  Time begin, end;
};

/// What was measured in one frame.
struct FrameResult {
  std::int64_t index = 0;  ///< 0, 1, ... in the order of the frames of one reference
  /// Displacement, statuses, strain. Without nodes where there is an error. From a GPU it lies in memory that
  /// serves a later frame when the field is gone.
  Field field;
  double noise = 0;              ///< of the images, grey levels: see TrackOptions::noise
  StageSeconds seconds;          ///< that the stages took: prepare, search, refine, strain
  std::vector<StageSpan> spans;  ///< when they did
  double latency = 0;            ///< seconds from the call of track or push to the result
  std::string error;             ///< why a stream could not measure it, one sentence; empty = it was measured
  std::vector<std::byte> state;  ///< with TrackOptions::keep_state: see TrackStream::restore
};

/// Tracks the points of one reference through a sequence of current frames, in constant memory.
/// The calls of one Tracker must not overlap; Trackers are independent of each other.
class Tracker {
 public:
  /// Throws UsageError (options, sizes, ROI), DeviceError.
  Tracker(const TrackOptions& options, ImageView reference, const Roi& roi = {});
  ~Tracker();
  Tracker(Tracker&&) noexcept;
  Tracker& operator=(Tracker&&) noexcept;

  const Grid& grid() const;
  /// Measures the next frame. Throws UsageError where size or type differ from the reference, DeviceError,
  /// Cancelled.
  FrameResult track(ImageView current, std::stop_token stop = {});
  /// Correlation variants and SIMD targets that ran.
  std::vector<std::string> kernels() const;
  /// "cpu", or number and name of the GPU: "cuda:0, NVIDIA H100 80GB HBM3".
  std::string device() const;
  /// Why it was chosen: one sentence; another where images are measured in bands of rows.
  std::string device_reason() const;
  /// Seconds that preparing the reference took.
  double prepare_seconds() const;
  /// The options with what was chosen from the reference: prefilter and refine.subset.
  TrackOptions options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic

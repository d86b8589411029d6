#pragma once

#include <array>
#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/shared/status.hpp>
#include <dic/synth_stereo.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// Benchmarks of the library on this machine. Every timed result is also checked against an independent
/// computation in float64, or against the known motion.
namespace dic::bench {

/// Output of a correlation: every value, or the best shift of each pair.
enum class Output : std::uint8_t { surfaces, peaks };
}  // namespace dic::bench

namespace dic {

template <>
struct EnumNames<bench::Output> {
  static constexpr EnumName<bench::Output> table[] = {{bench::Output::surfaces, "surfaces"},
                                                      {bench::Output::peaks, "peaks"}};
};

}  // namespace dic

namespace dic::bench {

/// The part of a computation that is timed.
enum class Level : std::uint8_t {
  whole,    ///< everything: open the device, allocate, plan, transfer, run, copy back, free
  call,     ///< one call of an existing Correlator: transfer, run, copy back
  upload,   ///< copying inputs to the device, by its clock (this and the next two: not on the CPU)
  kernel,   ///< running the kernels, launch after launch on inputs that stay on the device
  download  ///< copying results to the host
};
}  // namespace dic::bench

namespace dic {

template <>
struct EnumNames<bench::Level> {
  static constexpr EnumName<bench::Level> table[] = {{bench::Level::whole, "whole"},
                                                     {bench::Level::call, "call"},
                                                     {bench::Level::upload, "upload"},
                                                     {bench::Level::kernel, "kernel"},
                                                     {bench::Level::download, "download"}};
};

}  // namespace dic

namespace dic::bench {

/// One correlation job, described without its data. Inputs are random numbers, made from a seed.
struct Case {
  std::string group;  ///< name of its group
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  int bit_depth = 0;  ///< bits of integer types; 0 = all
  Criterion criterion = Criterion::zncc;
  Output output = Output::peaks;
  int ref_h = 0, ref_w = 0, search_h = 0, search_w = 0;  ///< sizes of reference and search window, px
  Shifts shifts;
  std::int64_t references = 1;
  std::int64_t windows = 1;  ///< total number of windows
  /// Side in px of the square images in which the matrices lie at random positions; a window is centred on
  /// its reference, and n_to_mn has one image per frame. 0 = packed matrices.
  int image = 0;
  bool masks = false;  ///< slanted stripes, a quarter of the references' elements, do not count

  bool operator==(const Case&) const = default;
  std::int64_t pairs() const;
  /// Useful operations: 2 x the multiply-adds of overlapping elements that no mask excludes.
  double operations() const;
  /// Useful traffic: bytes of the inputs, read once, and of the outputs, written once.
  double bytes() const;
};
/// A case as text: "one_to_one u8 31x31 radius 15, 1000 pairs, zncc peaks".
std::string describe(const Case& shape);

/// A case, the variant that computes it, and what is timed.
struct Task {
  Case shape;
  std::string variant;  ///< a registered name, or "planner"
  Level level = Level::call;
  bool operator==(const Task&) const = default;
};

/// The tasks of a TOML file (docs/performance-tables.md), for a device named as for Correlator. The device
/// decides what the variant "all" stands for. Throws FileError, UsageError with the line.
std::vector<Task> read_tasks(const std::filesystem::path& file, const std::string& device);
/// The tasks of a TOML text; messages call it `name`.
std::vector<Task> parse_tasks(const std::string& text, const std::string& name, const std::string& device);
/// The built-in set: pairings, sizes and types of interest, a few minutes.
std::vector<Task> default_tasks(const std::string& device);
/// The shapes of `dic bench --quick`: DIC and the search of a small template, by the planner's variant and
/// the naive one.
std::vector<Task> quick_tasks(const std::string& device);

struct Options {
  std::string device = "cpu";  ///< cpu, cuda or cuda:N
  int threads = 0;             ///< 0 = one per core
  std::uint64_t seed = 1;      ///< seed of the inputs
  /// Shortest time of a repeat, s (for kernels, time on the device): iterations are added until it is
  /// reached, so that the resolution of the clock does not matter.
  double min_seconds = 0.05;
  int repeats = 5;
  double max_seconds = 10;  ///< time after which no further repeat is started, s
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Seconds per iteration.
struct Timing {
  double first = 0;  ///< the first, cold call of a new object
  double median = 0, least = 0, most = 0;
  int repeats = 0;
  std::int64_t iterations = 0;  ///< number of iterations of a repeat
};

enum class Outcome : std::uint8_t {
  ok,
  /// the result differs from the float64 reference by more than the tolerance, so the time is invalid
  wrong,
  failed  ///< refused or failed; `problem` gives the reason
};
}  // namespace dic::bench

namespace dic {

template <>
struct EnumNames<bench::Outcome> {
  static constexpr EnumName<bench::Outcome> table[] = {
      {bench::Outcome::ok, "ok"}, {bench::Outcome::wrong, "wrong"}, {bench::Outcome::failed, "failed"}};
};

}  // namespace dic

namespace dic::bench {

/// The result of a task.
struct Row {
  Task task;
  std::string ran;  ///< variant that ran, also if the planner chose it
  Outcome outcome = Outcome::failed;
  std::string problem;  ///< one sentence; empty when ok
  Timing seconds;
  /// Largest difference to the float64 reference over the values compared, relative to |ref| |window|
  /// (cross_correlation), |ref|^2 + |window|^2 (ssd), 1 (zncc, ncc).
  double max_difference = 0;
  std::int64_t compared = 0;  ///< number of compared values
};

/// Machine, build and options of a report.
struct Machine {
  std::string version, date, command, device, model, simd, compiler;
  int threads = 1;
  std::uint64_t seed = 1;
};

/// The highest rate that a device reaches.
struct Ceiling {
  std::string name;  ///< "f32 multiply-adds", "memory"
  std::string unit;  ///< "op/s" (a multiply-add is two) or "B/s"
  double value = 0;
};
/// Lower bound, s, of the time of a direct computation of the case: its useful operations at the rate of the
/// fastest multiply-adds that are exact for its type (16 bits on tensor cores: four products of bytes, or f16
/// up to 12 bits), or its useful traffic at the bandwidth of memory. FFTs need fewer operations. 0 if the
/// ceilings are unknown.
double floor_seconds(const Case& shape, const std::vector<Ceiling>& ceilings);

struct Report {
  Machine machine;
  std::vector<Ceiling> ceilings;  ///< ceilings of the device; may be empty
  std::vector<Row> rows;
};

/// Runs the tasks in order. Rows of `earlier` that are not `failed` are kept and not run again. A failing
/// task becomes a row. `on_row` is called after each new row with the report so far. If `stop` is set,
/// returns the report so far. Throws UsageError (options, an earlier report of another device, seed or number
/// of threads), DeviceError if the device cannot be opened at all.
Report correlate(const std::vector<Task>& tasks, const Options& options, const std::string& command,
                 const Report& earlier = {}, const std::function<void(const Report&)>& on_row = {},
                 std::stop_token stop = {});

std::string to_json(const Report& report);
/// Parses a report. Throws UsageError if the text is not a report.
Report from_json(const std::string& text);
/// The report as CSV: a header and a line per row.
std::string to_csv(const Report& report);
/// The report as Markdown: a table per group with a line per case, a column per variant and, with ceilings,
/// one for the lower bound.
std::string to_markdown(const Report& report);
/// The document with `text` inserted between its lines "<!-- report: NAME -->" and "<!-- end of report -->".
/// Throws UsageError if these lines are missing.
std::string insert_report(const std::string& document, const std::string& name, const std::string& text);

/// Measures the rates of multiply-adds in registers and the bandwidth of memory (CPU: STREAM triad on all
/// threads; GPU: copies), each the best of the repeats. Returns none with OpenCL. Throws UsageError,
/// DeviceError.
std::vector<Ceiling> ceilings(const Options& options);

/// Draws the speed-up of the best variants over a baseline (cpu-naive, cuda-basic, the FFT variants) against
/// the size of the reference: one PNG per baseline and set of cases that differ only in size. If the report
/// has ceilings, also draws a roofline, useful operations per second against operations per byte below the
/// limits of the device, for the planner's choices, or for all rows if there are none. Draws only rows that
/// are ok. Returns the files. Throws FileError.
std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report);

struct TrackCase {
  int size = 1024;   ///< side of the images, px
  double noise = 2;  ///< noise of both images, grey levels
  std::uint64_t seed = 1;
  int repeats = 5;
  TrackOptions options;
};

/// Medians over the repeats. Each repeat makes a new Tracker, so that `prepare` includes the reference, and
/// tracks one frame.
struct TrackTiming {
  std::int64_t points = 0;  ///< points of the grid, which leaves 40 px free at every border
  std::int64_t measured = 0;
  StageSeconds seconds;  ///< prepare, search, refine, strain, and total, which includes creating the tracker
  double rms_error_u = 0, rms_error_v = 0;  ///< errors against the known motion, px
  std::string device;                       ///< "cpu" or the name of the GPU
  std::vector<std::string> kernels;
};
/// Times the tracking of synthetic speckle that moves by several px and stretches by 0.5 %. Throws
/// UsageError, DeviceError, Cancelled.
TrackTiming track(const TrackCase& shape, std::stop_token stop = {});

/// Throughput and latency of a TrackStream with frames in host memory: means over the frames.
struct StreamTiming {
  std::int64_t points = 0;  ///< points of the grid
  double lost = 0;          ///< points of a frame that were not measured
  double frames_per_second = 0;
  StageSeconds stages;  ///< seconds per frame: prepare, search, refine, strain
  double copy = 0;      ///< seconds in which the host copies the pixels of a frame
  double latency = 0;   ///< seconds from a push to its result, while other frames are in progress
  std::string device;
  int gpus = 1;  ///< number of GPUs that shared every frame
  /// rate of the first GPU alone, with the same frames; 0 if only one GPU worked
  double frames_per_second_of_one = 0;
};
/// Pushes `frames` frames of the case's speckle as fast as the stream takes them. Between frames, the motion
/// changes by a third of that in track(). Throws as track() does.
StreamTiming track_stream(const TrackCase& shape, int frames, std::stop_token stop = {});

/// Rendered pairs of a plane that moves in front of two cameras.
struct StereoCase {
  int size = 1024;         ///< px
  double noise = 1;        ///< grey levels
  std::uint64_t seed = 1;  ///< of speckle and noise
  SurfaceKind surface = SurfaceKind::plane;
  /// Motion along x between two pairs, px. Along y it is two thirds of that; motion in depth adds half of it
  /// at the edges.
  double motion = 3;
  bool whole = false;  ///< measures the whole left image, of which the right camera does not see all
  int repeats = 3;
  int stream = 0;  ///< number of pairs of a StereoStream; 0: as many as take two seconds, 4 to 200
  TrackOptions options;
};

/// Medians over the repeats, each with new trackers.
struct StereoTiming {
  std::string device;
  std::int64_t points = 0, measured = 0;  ///< of the last pair
  double reference_seconds = 0;           ///< preparing and measuring the references
  double pair_seconds = 0;                ///< a later pair
  double one_camera_seconds = 0;          ///< a frame of the left camera alone, as Tracker measures it
  int streamed = 0;                       ///< number of pairs of the stream
  double pairs_per_second = 0;            ///< of the stream
  /// Means over the pairs of the stream, each for both cameras together: they overlap.
  StageSeconds stages;
  double geometry_seconds = 0;
  double rms_error_z = 0, rms_error_w = 0;  ///< root mean square errors of shape and motion, mm
  double ratio() const { return pair_seconds / one_camera_seconds; }
};

/// Times StereoTracker and StereoStream, and Tracker with the left images in the same run. Throws as track()
/// does.
StereoTiming stereo(const StereoCase& shape, const std::stop_token& stop = {});

/// Images of files, tracked as a whole and, if it is given, in a region.
struct ImagesCase {
  std::vector<std::string>
      files;  ///< files, folders or globs, as for `dic track`; the first is the reference
  std::optional<Roi::Rect> region;  ///< region that is tracked too
  int frames = 0;  ///< length of the sequence, which goes to and fro over the images; 0 = each image once
  int repeats = 5;
  TrackOptions options;
};
struct ImagesTiming {
  Size image;  ///< size of the images
  int frames = 0;
  std::int64_t points = 0;                             ///< points of the grid
  std::array<std::int64_t, kStatusCount> by_status{};  ///< points of all frames, by status
  double seconds = 0;  ///< median time from the reference to the last result, images in host memory
  std::string device;
};
struct ImageTimings {
  ImagesTiming whole;
  std::optional<ImagesTiming> region;
};
/// Times the tracking of real images. What most people track first is a specimen before a background, without
/// a region; the points of the background cost time although none of them can be measured. Throws UsageError,
/// FileError, DeviceError, Cancelled.
ImageTimings track_images(const ImagesCase& shape, std::stop_token stop = {});

/// Times what `dic track` does: measures `frames` frames of that sequence from PNG files in a temporary
/// folder, and writes the fields there. The folder is removed. Throws as track() does, FileError.
TrackSummary track_files(const TrackCase& shape, int frames, std::stop_token stop = {});

/// Throws UsageError if a timeline needs more measured frames.
void check_timeline(std::int64_t frames);
/// Draws when each stage worked on which frame (FrameSummary::spans), for some frames in the middle of a run:
/// a PNG. Throws as check_timeline does, FileError.
void write_timeline(const std::filesystem::path& path, const std::vector<FrameSummary>& frames,
                    const std::string& title);

struct MatchCase {
  int template_size = 64;  ///< side of the template, px
  int image_size = 2048;   ///< side of the image, px
  double noise = 2;        ///< noise of both, grey levels
  bool poses = false;      ///< the image is turned, and the template is searched at any angle
  int templates = 1;       ///< different ones of this size, searched together; 1 without poses
};
struct MatchTiming {
  Timing seconds;    ///< time of Matcher::find with prepared templates
  Timing opencv;     ///< of cv::matchTemplate (TM_CCOEFF_NORMED) and minMaxLoc on the CPU; not with poses
  double error = 0;  ///< largest distance to the true position of a centre, px
  double turn_error = 0;  ///< largest one of an angle, degrees
  Timing follow;  ///< of TemplateTracker::next, which searches near the last pose; only of one template with
                  ///< poses
  double score = 0;       ///< lowest score
  double operations = 0;  ///< 2 x the multiply-adds of the correlation; 0 with poses
};
/// Times the search of templates in an 8-bit image of speckle. Throws UsageError (also if one is not found
/// within a pixel), DeviceError, Cancelled.
MatchTiming match(const MatchCase& shape, const Options& options, std::stop_token stop = {});

}  // namespace dic::bench

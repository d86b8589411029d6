#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// How fast this machine does what the library offers. Every result that is timed is also checked against an
/// independent computation in float64, or against the known motion.
namespace dic::bench {

/// What a correlation returns: every value, or the best shift of each pair.
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

/// Which part of a computation is timed.
enum class Level : std::uint8_t {
  whole,    ///< from nothing: open the device, allocate, plan, transfer, run, copy back, free
  call,     ///< one call of a Correlator that is kept: transfer, run, copy back
  upload,   ///< the steps of such a call, by the device's clock (not on the CPU): images and positions to the
            ///< device
  kernel,   ///< the kernels, launch after launch on inputs that stay on the device
  download  ///< results to the host
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
  std::string group;  ///< name of the group it comes from
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  int bit_depth = 0;  ///< of integer types; 0 = all bits
  Criterion criterion = Criterion::zncc;
  Output output = Output::peaks;
  int ref_h = 0, ref_w = 0, search_h = 0, search_w = 0;  ///< px
  Shifts shifts;
  std::int64_t references = 1;
  std::int64_t windows = 1;  ///< in all
  /// Side in px of the square images in which the matrices lie at random positions; a window is centred on
  /// its reference, and n_to_mn has one image per frame. 0 = packed matrices.
  int image = 0;
  bool masks = false;  ///< slanted stripes of the references do not count, a quarter of their elements

  bool operator==(const Case&) const = default;
  std::int64_t pairs() const;
  /// Useful operations: 2 x the multiply-adds of elements that overlap and that no mask excludes.
  double operations() const;
  /// Useful traffic: inputs read once and outputs written once.
  double bytes() const;
};
/// "one_to_one u8 31x31 radius 15, 1000 pairs, zncc peaks".
std::string describe(const Case& shape);

/// A case, the variant that computes it, and what is timed.
struct Task {
  Case shape;
  std::string variant;  ///< a registered name, or "planner"
  Level level = Level::call;
  bool operator==(const Task&) const = default;
};

/// The tasks of a TOML file (docs/bench.md), for a device as Correlator takes it, which decides what the
/// variant "all" stands for. Throws FileError, UsageError with the line.
std::vector<Task> read_tasks(const std::filesystem::path& file, const std::string& device);
/// The tasks of TOML text; `name` stands for the file in messages.
std::vector<Task> parse_tasks(const std::string& text, const std::string& name, const std::string& device);
/// The built-in set: pairings, sizes and types of interest, a few minutes.
std::vector<Task> default_tasks(const std::string& device);
/// The shapes of `dic bench --quick`: DIC and the search of a small template, by the planner and naively.
std::vector<Task> quick_tasks(const std::string& device);

struct Options {
  std::string device = "cpu";  ///< cpu, cuda or cuda:N
  int threads = 0;             ///< 0 = one per core
  std::uint64_t seed = 1;      ///< of the inputs
  /// Shortest time of a repeat, s: iterations are added until it is reached, so that the resolution of the
  /// clock does not matter. For kernels it is time on the device.
  double min_seconds = 0.05;
  int repeats = 5;
  double max_seconds = 10;  ///< no further repeat is started after this time, s
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// Seconds per iteration.
struct Timing {
  double first = 0;  ///< cold: the first call of a new object
  double median = 0, least = 0, most = 0;
  int repeats = 0;
  std::int64_t iterations = 0;  ///< of one repeat
};

enum class Outcome : std::uint8_t {
  ok,
  wrong,  ///< the result differs from the float64 reference by more than the tolerance: never a time to quote
  failed  ///< refused or failed: `problem` says why
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
  std::string ran;  ///< variant that ran: the planner's choice
  Outcome outcome = Outcome::failed;
  std::string problem;  ///< one sentence; empty when ok
  Timing seconds;
  /// Largest difference to the float64 reference over the values compared, relative to |ref| |window|
  /// (cross_correlation), |ref|^2 + |window|^2 (ssd), 1 (zncc, ncc).
  double max_difference = 0;
  std::int64_t compared = 0;  ///< values
};

/// Where and how it was measured.
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
/// Lower bound in s of the time of a direct computation of the case: its useful
/// operations at the rate of the fastest multiply-adds that are exact for its type (16 bits on tensor cores:
/// four products of bytes, or f16 up to 12 bits), or its useful traffic at the bandwidth of memory.
/// Transforms do fewer operations. 0 where the ceilings do not say.
double floor_seconds(const Case& shape, const std::vector<Ceiling>& ceilings);

struct Report {
  Machine machine;
  std::vector<Ceiling> ceilings;  ///< of the device; may be empty
  std::vector<Row> rows;
};

/// Runs the tasks in order. Rows of `earlier` that are not `failed` stay and are not run again. A task that
/// fails becomes a row. `on_row` is called after each new row with the report so far. Returns what it has
/// when `stop` is set. Throws UsageError (options, an earlier report of another device, seed or number of
/// threads), DeviceError where the device cannot be opened at all.
Report correlate(const std::vector<Task>& tasks, const Options& options, const std::string& command,
                 const Report& earlier = {}, const std::function<void(const Report&)>& on_row = {},
                 std::stop_token stop = {});

std::string to_json(const Report& report);
/// Throws UsageError where the text is no report.
Report from_json(const std::string& text);
/// A header and a line per row.
std::string to_csv(const Report& report);
/// A table per group: a line per case, a column per variant and, where there are ceilings, one for the floor.
std::string to_markdown(const Report& report);
/// The document with `text` between its lines "<!-- report: NAME -->" and "<!-- end of report -->". Throws
/// UsageError where it has no such lines.
std::string insert_report(const std::string& document, const std::string& name, const std::string& text);

/// Measures multiply-adds in registers and the bandwidth of memory (CPU: STREAM triad on all threads; GPU:
/// copies), the best of the repeats; none with OpenCL. Throws UsageError, DeviceError.
std::vector<Ceiling> ceilings(const Options& options);

/// Draws how many times faster the best variants are than a baseline (cpu-naive, cuda-basic, the FFT
/// variants) against the size of the reference: one PNG per baseline and set of cases that differ in size
/// alone. Where the report has ceilings, also a roofline: useful operations per second against operations per
/// byte, below what the device can do, of what the planner chose, or of every row where it was not asked.
/// Only rows that are ok. Returns the files. Throws FileError.
std::vector<std::filesystem::path> write_plots(const std::filesystem::path& folder, const Report& report);

struct TrackCase {
  int size = 1024;   ///< side of the images, px
  double noise = 2;  ///< of both images, grey levels
  std::uint64_t seed = 1;
  int repeats = 5;
  TrackOptions options;
};

/// Medians over the repeats. Each makes a new Tracker, so that `prepare` takes in the reference, and tracks
/// one frame.
struct TrackTiming {
  std::int64_t points = 0;  ///< of the grid, which leaves 40 px free at every border
  std::int64_t measured = 0;
  StageSeconds seconds;  ///< prepare, search, refine, strain, and total: with creating the tracker
  double rms_error_u = 0, rms_error_v = 0;  ///< against the known motion, px
  std::string device;                       ///< "cpu" or the GPU's name
  std::vector<std::string> kernels;
};
/// Times the tracking of synthetic speckle that moves by several px and stretches by 0.5 %. Throws
/// UsageError, DeviceError, Cancelled.
TrackTiming track(const TrackCase& shape, std::stop_token stop = {});

/// How a TrackStream keeps up with frames that are in host memory: means over the frames.
struct StreamTiming {
  std::int64_t points = 0;  ///< of the grid
  double lost = 0;          ///< points of a frame that were not measured
  double frames_per_second = 0;
  StageSeconds stages;  ///< of a frame: prepare, search, refine, strain
  double copy = 0;      ///< seconds in which the host copies the pixels of a frame
  double latency = 0;   ///< seconds from a push to its result, while others are under way
  std::string device;
  int gpus = 1;                         ///< that shared every frame
  double frames_per_second_of_one = 0;  ///< the first alone, with the same frames; 0 where none shared
};
/// Pushes `frames` frames of the case's speckle as fast as the stream takes them. From frame to frame the
/// motion grows or shrinks by a third of that in track(). Throws as track() does.
StreamTiming track_stream(const TrackCase& shape, int frames, std::stop_token stop = {});

/// What `dic track` does: pushes `frames` frames of that sequence from PNG files in a temporary folder, and
/// writes the fields there. The folder is removed. Throws as track() does, FileError.
TrackSummary track_files(const TrackCase& shape, int frames, std::stop_token stop = {});

/// Throws UsageError where a timeline needs more measured frames.
void check_timeline(std::int64_t frames);
/// Draws when each stage worked on which frame (FrameSummary::spans), for some frames in the middle of a run:
/// a PNG. Throws as check_timeline does, FileError.
void write_timeline(const std::filesystem::path& path, const std::vector<FrameSummary>& frames,
                    const std::string& title);

struct MatchCase {
  int template_size = 64;  ///< side, px
  int image_size = 2048;   ///< side, px
  double noise = 2;        ///< of both, grey levels
};
struct MatchTiming {
  Timing seconds;         ///< of Matcher::find, the templates being prepared
  Timing opencv;          ///< of cv::matchTemplate, TM_CCOEFF_NORMED, and its minMaxLoc on the CPU
  double error = 0;       ///< distance to the true position, px
  double score = 0;       ///< of the match
  double operations = 0;  ///< 2 x the multiply-adds of the correlation
};
/// Times the search of one template in an 8-bit image of speckle. Throws UsageError (also where the
/// template is not found within a pixel), DeviceError, Cancelled.
MatchTiming match(const MatchCase& shape, const Options& options, std::stop_token stop = {});

}  // namespace dic::bench

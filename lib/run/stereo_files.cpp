#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/stereo_files.hpp>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "io/surface_file.hpp"
#include "run/frame_pairs.hpp"
#include "run/machine.hpp"
#include "run/output_folder.hpp"
#include "run/results.hpp"
#include "run/run_json.hpp"
#include "run/stereo_json.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

namespace fs = std::filesystem;
using track::Stopwatch;

/// Images of both cameras at one moment, or why they could not be read.
struct ImagePair {
  Image left, right;
  std::string error;
};

/// Reads pairs, the next one while the caller works. Nothing at the end.
class PairReader {
 public:
  PairReader(FrameSource& left, FrameSource& right) : left_(left), right_(right) { request(); }

  std::optional<ImagePair> next() {
    if (!pending_.valid()) return {};
    std::optional<ImagePair> pair = pending_.get();
    if (pair) request();
    return pair;
  }

 private:
  void request() {
    pending_ = std::async(std::launch::async, [this, k = index_++] { return read(k); });
  }
  std::optional<ImagePair> read(std::int64_t k) {
    ImagePair pair;
    const bool has_left = read(left_, k, pair.left, pair.error),
               has_right = read(right_, k, pair.right, pair.error);
    if (has_left != has_right)
      throw UsageError("The two cameras have different numbers of images: " +
                       std::string(has_left ? "the right" : "the left") + " one ends after " +
                       std::to_string(k) + "; each left image needs the right one of the same moment.");
    return has_left ? std::optional(std::move(pair)) : std::nullopt;
  }
  /// False past the end.
  static bool read(FrameSource& source, std::int64_t k, Image& image, std::string& error) {
    try {
      image = source.read(k);
    } catch (const FileError& failure) {
      error += (error.empty() ? "" : " ") + std::string(failure.what());
    } catch (const std::out_of_range&) {
      return false;
    }
    return true;
  }

  FrameSource &left_, &right_;
  std::int64_t index_ = 0;
  std::future<std::optional<ImagePair>> pending_;
};

/// Statistics of an array over the points with values.
StereoStatistics statistics_of(const Field& field, std::string_view name) {
  const FieldArray& array = *find_field_array(name);
  const FieldArray* const sigma = sigma_of(array);
  double n = 0, sum = 0, squares = 0, sigmas = 0;
  const auto each = [&](const auto& body) {
    for (std::size_t k = 0; k < field.status.size(); ++k)
      if (const double value = value_at(field, array, k); has_values(field.status[k]) && !std::isnan(value))
        body(k, value);
  };
  each([&](std::size_t k, double value) {
    n += 1, sum += value, sigmas += sigma ? value_at(field, *sigma, k) : NAN;
  });
  const double mean = sum / n;
  each([&](std::size_t, double value) { squares += (value - mean) * (value - mean); });
  return {mean, n > 1 ? std::sqrt(squares / (n - 1)) : n > 0 ? 0.0 : NAN, sigmas / n};
}

/// Median distance of neighbouring points along rows and columns, mm, per px of the left image.
double mm_per_px(const Field& field) {
  const Grid& grid = field.grid();
  const StereoField& at = field.stereo;
  std::vector<double> distances;
  const auto add = [&](std::size_t a, std::size_t b) {
    const double d = std::hypot(at.x[a] - at.x[b], at.y[a] - at.y[b], at.z[a] - at.z[b]);
    if (!std::isnan(d)) distances.push_back(d);
  };
  for (int j = 0; j + 1 < grid.ny; ++j)
    for (int i = 0; i + 1 < grid.nx; ++i) {
      const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
      add(k, k + 1), add(k, k + grid.nx);
    }
  if (distances.empty()) return NAN;
  const auto middle = distances.begin() + std::ssize(distances) / 2;
  std::ranges::nth_element(distances, middle);
  return *middle / grid.step;
}

class StereoRun {
 public:
  StereoRun(const StereoJob& job, const ProgressCallback& progress, std::stop_token stop,
            const StereoCallback& on_frame)
      : job_(job),
        progress_(progress),
        on_frame_(on_frame),
        stop_(std::move(stop)),
        folder_(job.track.output,
                job.track.force ? OutputFolder::Earlier::replace : OutputFolder::Earlier::refuse) {
    options_ = job.options;
    options_.track = job.track.options;
    summary_.host = host_name();
    summary_.date = local_time();
    summary_.output = job.track.output;
  }

  StereoSummary execute() {
    open();
    PairReader reader(*left_, *right_);
    std::optional<ImagePair> pair = next(reader);
    if (!pair) throw UsageError("There are no images: give those of both cameras.");
    if (!pair->error.empty()) throw FileError(pair->error);
    measure_references(*pair);
    pair.reset();  // frees the images
    try {
      measure_others(reader);
    } catch (const FileError&) {  // nothing more can be written
      throw;
    } catch (...) {
      summary_.interrupted = true;
      finish();
      throw;
    }
    summary_.interrupted = stop_.stop_requested();
    finish();
    return std::move(summary_);
  }

 private:
  void open() {
    left_ = open_frames(job_.track.frames);
    right_ = open_frames(job_.right);
    const auto left = left_->count(), right = right_->count();
    if (!left || !right) return;
    if (*left != *right)
      throw UsageError("There are " + std::to_string(*left) + " left and " + std::to_string(*right) +
                       " right images: each left image needs the right one of the same moment.");
    std::vector<std::string> names[2];
    for (std::int64_t k = 0; k < *left; ++k)
      names[0].push_back(left_->name(k)), names[1].push_back(right_->name(k));
    summary_.pairing = mismatch_of(names[0], names[1]);
    count_ = *left;
    if (job_.track.pictures == Pictures::some) drawn_ = frames_to_draw(count_);
  }

  std::optional<ImagePair> next(PairReader& reader) {
    const Stopwatch watch;
    report("load", 0);
    std::optional<ImagePair> pair = reader.next();
    summary_.seconds.load += watch.seconds();
    return pair;
  }

  void measure_others(PairReader& reader) {
    for (int number = 1; !stop_.stop_requested(); ++number) {
      std::optional<ImagePair> pair = next(reader);
      if (!pair || !measure(std::move(*pair), number)) return;
    }
  }

  void measure_references(const ImagePair& pair) {
    report("prepare", 0);
    summary_.rig = job_.rig.cameras.empty() ? read_camera_rig(job_.calibration, pair.left.size()) : job_.rig;
    tracker_.emplace(options_, summary_.rig, pair.left, pair.right, job_.track.roi, stop_);
    const StereoFrame& reference = tracker_->reference();
    summary_.rig_correction = tracker_->rig_correction();
    if (options_.correct_rig && summary_.rig_correction) summary_.rig = summary_.rig_correction->rig;
    summary_.image = pair.left.size();
    summary_.points = tracker_->grid().points();
    summary_.options = tracker_->options();
    summary_.order_between_cameras = tracker_->order_between_cameras();
    summary_.device = tracker_->device();
    summary_.device_reason = tracker_->device_reason();
    summary_.gauge =
        (summary_.options.strain.window - 1) * summary_.options.step + summary_.options.refine.subset;
    summary_.gauge_mm = summary_.gauge * mm_per_px(reference.field);
    folder_.begin();
    const ResultInfo info = describe_result();
    result_.emplace(folder_.claim("result.vtkhdf"), tracker_->grid(), info);
    surface_.emplace(folder_.claim("surface.vtkhdf"), info);
    if (options_.correct_rig) write_camera_rig(folder_.claim("stereo.json"), summary_.rig);
    write(reference, pair.left, 0);
  }

  /// False if the run was interrupted before.
  bool measure(ImagePair pair, int number) {
    report("search", number);
    if (pair.error.empty()) {
      try {
        const StereoFrame frame = tracker_->track(pair.left, pair.right, stop_);
        write(frame, pair.left, number);
        return true;
      } catch (const Cancelled&) {
        return false;
      } catch (const UsageError& problem) {  // its size or depth differs from that of the references
        pair.error = left_->name(number) + ", " + right_->name(number) + ": " + problem.what();
      }
    }
    StereoFrameSummary entry = named(number);
    entry.error = pair.error;
    summary_.frames.push_back(std::move(entry));
    return true;
  }

  StereoFrameSummary named(int number) const {
    StereoFrameSummary entry;
    entry.left = left_->name(number), entry.right = right_->name(number);
    return entry;
  }

  void write(const StereoFrame& frame, ImageView left, int number) {
    report("write", number);
    if (on_frame_) on_frame_(frame, number);
    const Stopwatch watch;
    StereoFrameSummary entry = named(number);
    entry.counts = frame.field.counts();
    for (std::size_t k = 0; k < kStereoSummary.size(); ++k)
      entry.statistics[k] = statistics_of(frame.field, kStereoSummary[k]);
    entry.epipolar_median = frame.epipolar_median, entry.epipolar_sd = frame.epipolar_sd;
    entry.motion = frame.motion;
    entry.noise_left = frame.noise_left, entry.noise_right = frame.noise_right;
    entry.seconds = frame.seconds.measuring();
    const std::string stem = folder_.unique_stem(fs::path(entry.left).stem().string());
    result_->append(frame.field, number, entry.left);
    surface_->add(frame.field, number);
    if (job_.track.csv) write_stereo_csv(folder_.claim(fs::path("csv") / (stem + ".csv")), frame.field);
    if (is_drawn(number)) draw(frame.field, left, stem, number);
    summary_.seconds += frame.seconds;
    summary_.seconds.write += watch.seconds();
    points_done_ += summary_.points;
    summary_.frames.push_back(std::move(entry));
  }

  bool is_drawn(int number) const {
    if (job_.track.pictures == Pictures::some) return number == 0 || drawn_.contains(number);
    return job_.track.pictures == Pictures::all;
  }

  /// Draws the shape, and displacement and strain where there are any.
  void draw(const Field& field, ImageView left, const std::string& stem, int number) {
    ++summary_.frames_drawn;
    for (const std::string_view name : {"Z", "W", "e1"}) {
      if (number == 0 && name != "Z") continue;
      const FieldArray& array = *find_field_array(name);
      std::vector<float> values(field.status.size());
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = static_cast<float>(value_at(field, array, k));
      FigureOptions options;
      options.symbol = array.symbol.empty() ? std::string(name) : std::string(array.symbol);
      options.unit = array.is_strain() ? "" : array.unit_in("px");
      options.heading = left_->name(number);
      const fs::path path = folder_.claim(fs::path("pictures") / (stem + "_" + std::string(name) + ".png"));
      write_field_picture(path, left, field, values, options,
                          job_.track.canvases ? job_.track.canvases : png_canvases());
    }
  }

  ResultInfo describe_result() const {
    ResultInfo info;
    info.subset = summary_.options.refine.subset;
    info.image = summary_.image;
    info.strain = options_.track.strain;
    info.version = version();
    info.command = job_.track.command;
    info.reference = left_->name(0);
    info.settings_json = stereo_settings_json(job_);
    return info;
  }

  void finish() {
    const Stopwatch watch;
    result_->finish();
    surface_->finish();
    summary_.kernels = tracker_->kernels();
    summary_.seconds.write += watch.seconds();
    summary_.seconds.total = total_.seconds();
    write_text_file(folder_.claim("run.json"), stereo_run_json(job_, summary_));
    folder_.commit();
  }

  void report(const char* stage, int frame) const {
    if (progress_)
      progress_({stage, frame, static_cast<int>(std::max<std::int64_t>(count_ - 1, 0)), points_done_,
                 total_.seconds()});
  }

  const StereoJob& job_;
  const ProgressCallback& progress_;
  const StereoCallback& on_frame_;
  std::stop_token stop_;
  Stopwatch total_;
  OutputFolder folder_;
  StereoOptions options_;
  std::unique_ptr<FrameSource> left_, right_;
  std::int64_t count_ = 0;        ///< number of pairs; 0 = unknown
  std::set<std::int64_t> drawn_;  ///< numbers of the pairs to draw
  std::optional<StereoTracker> tracker_;
  std::optional<VtkHdfWriter> result_;
  std::optional<io::SurfaceFile> surface_;
  StereoSummary summary_;
  std::int64_t points_done_ = 0;
};

}  // namespace
}  // namespace dic::run

namespace dic {

std::vector<std::string> StereoJob::validate() const {
  StereoOptions all = options;
  all.track = track.options;
  std::vector<std::string> found = all.validate();
  if (!rig.cameras.empty())
    for (const std::string& problem : rig.validate()) found.push_back(problem);
  if (rig.cameras.empty() && calibration.empty())
    found.push_back("The calibration of both cameras is needed.");
  if (track.frames.empty() || right.empty())
    found.push_back("Images of both cameras are needed: name those of the left and of the right one.");
  return found;
}

const std::vector<std::string>& one_camera_options() {
  static const std::vector<std::string> names = {
      "reference", "camera", "fps",       "times",       "global",    "global-resolution",
      "resume",    "scale",  "csv-style", "noise-floor", "max-memory"};
  return names;
}

StereoSummary stereo_files(const StereoJob& job, const ProgressCallback& progress, std::stop_token stop,
                           const StereoCallback& on_frame) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  return run::StereoRun(job, progress, std::move(stop), on_frame).execute();
}

}  // namespace dic

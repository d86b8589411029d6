#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/memory.hpp>
#include <dic/stereo_files.hpp>
#include <dic/track_options.hpp>
#include <dic/watch.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/worker.hpp"
#include "run/frame_times.hpp"
#include "run/image_pairs.hpp"
#include "run/machine.hpp"
#include "run/run_json.hpp"
#include "run/run_log.hpp"
#include "run/stereo_json.hpp"
#include "run/stereo_results.hpp"
#include "run/watched_folder.hpp"
#include "stereo/pair_tracker.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

using track::Stopwatch;

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

std::string time_text(const std::optional<double>& time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g s", time.value_or(NAN));
  return time ? text : "unknown";
}

/// Opens the images of a job. The argument names those that an earlier run has processed.
using OpenPairs = std::function<std::unique_ptr<ImagePairs>(const StereoLog::Contents* earlier)>;

/// Callbacks of a run; each may be empty.
struct Listeners {
  ProgressCallback progress;
  StereoCallback on_frame;         ///< called with each measured pair
  StereoWatchCallback on_written;  ///< called with each pair that is in the result
};

class StereoRun {
 public:
  /// most: number of pairs after which the run ends; 0 = all.
  StereoRun(const StereoJob& job, OpenPairs open, std::int64_t most, Listeners listeners,
            std::stop_token stop)
      : job_(job),
        open_(std::move(open)),
        most_(most),
        listeners_(std::move(listeners)),
        stop_(std::move(stop)),
        limit_(job.track.max_memory, job.track.output),
        results_(job) {
    options_ = job.options;
    options_.track = job.track.options;
    options_.track.keep_state = true;
    summary_.host = host_name();
    summary_.date = local_time();
    summary_.output = job.track.output;
  }

  StereoSummary execute() {
    open();
    if (summary_.was_complete) {
      summary_.frames_drawn = results_.complete_earlier(done_, *images_);
      return std::move(summary_);
    }
    try {
      measure();
      finish();
    } catch (const FileError& failure) {  // thrown by writing: nothing more can be written
      if (!results_.begun()) throw;
      summary_.interrupted = true;
      throw FileError(std::string(failure.what()) + " What was measured is in " +
                      results_.keep(summary_).string() + ": continue it with --resume.");
    }
    return std::move(summary_);
  }

 private:
  void open() {
    const Stopwatch watch;
    report("load", 0);
    const std::optional<StereoLog::Contents> earlier = results_.earlier();
    images_ = open_(earlier ? &*earlier : nullptr);
    summary_.frames_given = images_->count();
    times_.emplace(job_.track, images_->left());
    std::optional<ImagePair> first = images_->reach(0) ? images_->read(0) : std::nullopt;
    if (!first) throw std::out_of_range("There are no images.");
    if (!first->error.empty()) throw FileError(first->error);
    references_ = std::move(*first);
    summary_.rig =
        job_.rig.cameras.empty() ? read_camera_rig(job_.calibration, references_.left.size()) : job_.rig;
    done_.version = version();
    done_.settings = stereo_resume_settings(job_, summary_.rig);
    done_.reference = references_.stamp;
    if (earlier) take_over(*earlier);
    summary_.seconds.load += watch.seconds();
  }

  void measure() {
    measure_references();
    try {
      if (summary_.frames_resumed > 1) go_on();
      measure_others();
    } catch (const FileError&) {
      throw;
    } catch (...) {
      summary_.interrupted = true;
      finish();
      throw;
    }
    summary_.interrupted = stop_.stop_requested();
  }

  void measure_references() {
    report("prepare", 0);
    tracker_.emplace(options_, summary_.rig, references_.left, references_.right, job_.track.roi, stop_);
    const StereoFrame& reference = tracker_->reference();
    summary_.rig_correction = tracker_->rig_correction();
    if (options_.correct_rig && summary_.rig_correction) summary_.rig = summary_.rig_correction->rig;
    summary_.image = references_.left.size();
    summary_.points = tracker_->grid().points();
    summary_.options = tracker_->options();
    summary_.order_between_cameras = tracker_->order_between_cameras();
    summary_.device = tracker_->device();
    summary_.device_reason = tracker_->device_reason();
    summary_.gauge =
        (summary_.options.strain.window - 1) * summary_.options.step + summary_.options.refine.subset;
    summary_.gauge_mm = summary_.gauge * mm_per_px(reference.field);
    if (summary_.frames_resumed > 0 && results_.earlier_result().grid() != tracker_->grid())
      refuse_to_resume("other points (the ROI)");
    results_.begin(tracker_->grid(), describe_result(), done_, summary_);
    if (summary_.frames_resumed == 0) write(reference, 0, references_.stamp);
    references_ = {};  // frees the images
  }

  /// A pair that is being read and matched by another thread.
  struct PairUnderWay {
    std::optional<ImagePair>
        pair;                     ///< without its images; none after the last one, or if the run was stopped
    stereo::MatchedPair matched;  ///< empty if the pair has an error
    bool is_refused = false;      ///< its error is that of a size or depth
    double load_seconds = 0;
    std::future<void> done;
  };

  /// Reads and matches pairs while the surfaces of those before them are computed and written.
  void measure_others() {
    constexpr std::size_t kUnderWay = 2;
    std::int64_t number = std::max<std::int64_t>(summary_.frames_resumed, 1);
    PairReader reader(*images_, number, most_);
    core::Worker matcher;  // declared last: it waits for its tasks
    std::deque<std::shared_ptr<PairUnderWay>> pairs;
    while (!stop_.stop_requested()) {
      while (pairs.size() < kUnderWay) {
        auto& pair = *pairs.emplace_back(std::make_shared<PairUnderWay>());
        pair.done = matcher.submit([this, &reader, pair = pairs.back()] { read_and_match(reader, *pair); });
      }
      report("search", static_cast<int>(number++));
      const std::shared_ptr<PairUnderWay> pair = std::move(pairs.front());
      pairs.pop_front();
      pair->done.get();
      summary_.seconds.load += pair->load_seconds;
      if (!pair->pair) return;
      finish_pair(*pair);
    }
  }

  void read_and_match(PairReader& reader, PairUnderWay& out) {
    if (stop_.stop_requested()) return;
    const Stopwatch watch;
    std::optional<ImagePair> pair = reader.next();
    out.load_seconds = watch.seconds();
    try {
      if (pair && pair->error.empty())
        out.matched = tracker_->match(tracker_->take(pair->left, pair->right), stop_);
    } catch (const Cancelled&) {
      return;
    } catch (const UsageError& problem) {  // its size or depth differs from that of the references
      pair->error = problem.what();
      out.is_refused = true;
    }
    if (pair) pair->left = pair->right = {};
    out.pair = std::move(pair);
  }

  void finish_pair(PairUnderWay& under_way) {
    const ImagePair& pair = *under_way.pair;
    const auto number = static_cast<int>(pair.index);
    if (pair.error.empty()) {
      write(tracker_->finish(std::move(under_way.matched)), number, pair.stamp);
      return;
    }
    StereoFrameSummary entry = named(number);
    entry.error = pair.error;
    if (under_way.is_refused)
      entry.error = images_->left_name(number) + ", " + images_->right_name(number) + ": " + pair.error;
    note(std::move(entry), number, pair.stamp, Field());
  }

  StereoFrameSummary named(int number) const {
    StereoFrameSummary entry;
    entry.left = images_->left_name(number), entry.right = images_->right_name(number);
    entry.time = time_of(number);
    return entry;
  }

  std::optional<double> time_of(std::int64_t number) const {
    const std::int64_t left = images_->left_index(number);
    return left < 0 ? std::nullopt : times_->at(left);
  }

  void write(StereoFrame frame, int number, const std::string& stamp) {
    report("write", number);
    if (listeners_.on_frame) listeners_.on_frame(frame, number);
    const Stopwatch watch;
    StereoFrameSummary entry = named(number);
    entry.counts = frame.field.counts();
    for (std::size_t k = 0; k < kStereoSummary.size(); ++k)
      entry.statistics[k] = statistics_of(frame.field, kStereoSummary[k]);
    entry.epipolar_median = frame.epipolar_median, entry.epipolar_sd = frame.epipolar_sd;
    entry.motion = frame.motion;
    entry.noise_left = frame.noise_left, entry.noise_right = frame.noise_right;
    entry.seconds = frame.seconds.measuring() + frame.geometry_seconds;
    const double time = times_->in_seconds() ? entry.time.value_or(NAN) : number;
    results_.add(frame.field, {number, time, entry.left}, std::move(frame.state));
    note(std::move(entry), number, stamp, frame.field);
    summary_.seconds += frame.seconds;
    summary_.geometry_seconds += frame.geometry_seconds;
    summary_.seconds.write += watch.seconds();
    points_done_ += summary_.points;
  }

  /// Publishes before it notifies listeners.
  void note(StereoFrameSummary entry, int number, const std::string& stamp, const Field& field) {
    summary_.frames.push_back(entry);
    results_.note({number, stamp, std::move(entry)}, summary_);
    if (listeners_.on_written) listeners_.on_written(summary_.frames.back(), field, number);
  }

  [[noreturn]] void refuse_to_resume(const std::string& why) const {
    throw UsageError("Cannot continue the result in " + job_.track.output.string() + ": " + why +
                     "; measure into another folder with -o, or start again with --force.");
  }

  /// Continues an earlier run. Throws UsageError if this run differs from it.
  void take_over(const StereoLog::Contents& earlier) {
    if (earlier.version != done_.version)
      refuse_to_resume("it was begun by dic " + earlier.version + ", this is dic " + done_.version);
    if (earlier.settings != done_.settings)
      refuse_to_resume("other settings (" + differences(earlier.settings, done_.settings) + ")");
    if (earlier.reference != done_.reference)
      refuse_to_resume("the pair of references is another one, or has changed");
    for (const StereoLog::Done& frame : earlier.frames) check_same(frame);
    done_.frames = earlier.frames;
    keep_whole_pairs();
    for (const StereoLog::Done& frame : done_.frames) summary_.frames.push_back(frame.summary);
    summary_.frames_resumed = std::ssize(summary_.frames);
    summary_.was_complete = results_.earlier_is_complete() && summary_.frames_resumed == images_->count();
  }

  void check_same(const StereoLog::Done& frame) const {
    const std::string& name = frame.summary.left.empty() ? frame.summary.right : frame.summary.left;
    if (!images_->reach(frame.index))
      refuse_to_resume(name + " was measured, but is not among the images any more");
    const std::string left = images_->left_name(frame.index), right = images_->right_name(frame.index);
    if (left != frame.summary.left || right != frame.summary.right)
      refuse_to_resume("pair " + std::to_string(frame.index) + " was " + frame.summary.left + " and " +
                       frame.summary.right + ", now it is " + left + " and " + right);
    if (images_->stamp(frame.index) != frame.stamp)
      refuse_to_resume(left + " or " + right + " has changed since");
    if (time_of(frame.index) != frame.summary.time)
      refuse_to_resume("the time of " + name + " is " + time_text(time_of(frame.index)) + " now, and was " +
                       time_text(frame.summary.time));
  }

  /// Drops a last pair that is in one file of the result and not in another.
  void keep_whole_pairs() {
    if (std::ranges::none_of(done_.frames, &StereoLog::Done::was_measured)) return;
    const Result result = results_.earlier_result();
    if (result.info().strain.window != job_.track.options.strain.window ||
        result.info().strain.measure != job_.track.options.strain.measure)
      refuse_to_resume("its strain has been replaced by dic strain");
    std::int64_t measured = 0;
    const auto beyond = std::ranges::find_if(done_.frames, [&](const StereoLog::Done& frame) {
      return frame.was_measured() && ++measured > result.frame_count();
    });
    done_.frames.erase(beyond, done_.frames.end());
  }

  /// Continues where the earlier run stopped: from its state, or, on a GPU, by measuring its last pair again.
  void go_on() {
    const auto last =
        std::ranges::find_if(done_.frames.rbegin(), done_.frames.rend(), &StereoLog::Done::was_measured);
    if (last == done_.frames.rend() || last->index == 0) return;
    if (tracker_->restore(results_.state_after(last->index),
                          [this](std::int64_t pair, int camera) { return read_measured(pair, camera); }))
      return;
    if (job_.track.options.reference_strategy != ReferenceStrategy::first)
      refuse_to_resume(
          "where its points are is not known (on a GPU, or after a power failure), and pairs need those "
          "before but with the reference strategy first");
    const Image left = images_->read(last->index, 0), right = images_->read(last->index, 1);
    tracker_->track(left, right, stop_);
  }

  /// Reads an image of the k-th measured pair.
  Image read_measured(std::int64_t k, int camera) const {
    for (const StereoLog::Done& frame : done_.frames)
      if (frame.was_measured() && k-- == 0) return images_->read(frame.index, camera);
    throw UsageError("The state of the run does not belong to its pairs.");
  }

  ResultInfo describe_result() const {
    ResultInfo info;
    info.subset = summary_.options.refine.subset;
    info.image = summary_.image;
    info.strain = options_.track.strain;
    info.version = version();
    info.command = job_.track.command;
    info.reference = images_->left_name(0);
    info.settings_json = stereo_settings_json(job_);
    if (times_->in_seconds()) info.time_unit = "s";
    return info;
  }

  void finish() {
    summary_.kernels = tracker_->kernels();
    tracker_.reset();  // frees the memory that drawing needs
    summary_.pairing = images_->mismatch();
    summary_.seconds.total = total_.seconds();
    results_.finish(summary_, *images_);
  }

  void report(const char* stage, int frame) const {
    const std::int64_t count = summary_.frames_given.value_or(1);
    if (listeners_.progress)
      listeners_.progress({stage, frame, static_cast<int>(count - 1), points_done_, total_.seconds()});
  }

  const StereoJob& job_;
  OpenPairs open_;
  std::int64_t most_;
  Listeners listeners_;
  std::stop_token stop_;
  Stopwatch total_;
  MemoryLimit limit_;  ///< declared before all members that hold images
  StereoResults results_;
  StereoOptions options_;
  std::unique_ptr<ImagePairs> images_;
  std::optional<FrameTimes> times_;
  ImagePair references_;
  StereoLog::Contents done_;  ///< pairs that an earlier run processed
  std::optional<stereo::PairTracker> tracker_;
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
  for (std::string& problem : one_camera_problems(track)) found.push_back(std::move(problem));
  return found;
}

std::vector<std::string> one_camera_problems(const TrackJob& job) {
  std::vector<std::string> found;
  for (const OneCameraOption& option : one_camera_options())
    if (const auto& get = track_option(option.name).get; get(job) != get(TrackJob()))
      found.push_back("The option " + option.name + " " + option.why + ".");
  return found;
}

const std::vector<OneCameraOption>& one_camera_options() {
  static const std::vector<OneCameraOption> options = {
      {"reference", "is for one camera: the first pair of images is the reference of a run with two"},
      {"camera", "is for one camera: the calibration of both takes its place"},
      {"global", "is for one camera: there is no global step across two"},
      {"global-resolution", "is for one camera: there is no global step across two"},
      {"scale", "is for one camera: lengths are in mm by the calibration of both"},
      {"csv-style", "is for one camera: tables of two have columns that other programs do not know"},
      {"noise-floor",
       "is for one camera: with two, compare the standard deviations in run.json, measured and predicted"}};
  return options;
}

StereoSummary stereo_files(const StereoJob& job, const ProgressCallback& progress, std::stop_token stop,
                           const StereoCallback& on_frame) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  const auto open = [&](const run::StereoLog::Contents*) {
    return std::make_unique<run::ImagePairs>(open_frames(job.track.frames), open_frames(job.right),
                                             run::Pairing::by_order);
  };
  try {
    return run::StereoRun(job, open, 0, {progress, on_frame, {}}, std::move(stop)).execute();
  } catch (const std::out_of_range&) {
    throw UsageError("There are no images: give those of both cameras.");
  }
}

namespace {

/// Names of the images of one camera that an earlier run has processed.
std::vector<std::string> names_of(const run::StereoLog::Contents* earlier,
                                  std::string StereoFrameSummary::*camera) {
  std::vector<std::string> names;
  if (!earlier) return names;
  for (const run::StereoLog::Done& frame : earlier->frames)
    if (const std::string& name = frame.summary.*camera; !name.empty()) names.push_back(name);
  return names;
}

}  // namespace

StereoSummary watch_folders(StereoJob job, const WatchOptions& left, const std::filesystem::path& right,
                            const StereoWatchCallback& on_written, std::stop_token stop) {
  WatchOptions of_right = left;
  of_right.folder = right;
  job.track.frames = {left.folder.string()};
  job.right = {right.string()};
  for (const auto& problems : {left.validate(), of_right.validate(), job.validate()})
    for (const std::string& problem : problems) throw UsageError(problem);
  std::error_code unknown;
  if (std::filesystem::equivalent(left.folder, right, unknown))
    throw UsageError("Both cameras have the same folder: name that of the left and that of the right one.");
  const std::int64_t most = left.until > 0 ? left.until + 1 : 0;
  const auto open = [&](const run::StereoLog::Contents* earlier) {
    const auto watched = [&](const WatchOptions& options, std::string StereoFrameSummary::*camera) {
      return std::make_unique<run::WatchedFolder>(options, names_of(earlier, camera), 0, stop);
    };
    const bool by_name = left.order == ArrivalOrder::name;
    return std::make_unique<run::ImagePairs>(watched(left, &StereoFrameSummary::left),
                                             watched(of_right, &StereoFrameSummary::right),
                                             by_name ? run::Pairing::by_name : run::Pairing::by_order);
  };
  try {
    return run::StereoRun(job, open, most, {{}, {}, on_written}, {}).execute();
  } catch (const std::out_of_range&) {
    throw Cancelled("No pair of images came into " + left.folder.string() + " and " + right.string() +
                    ": nothing was written.");
  }
}

}  // namespace dic

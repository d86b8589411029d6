#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/memory.hpp>
#include <dic/track_files.hpp>
#include <dic/track_stream.hpp>
#include <dic/watch.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "analysis/noise_curve.hpp"
#include "run/frame_feeder.hpp"
#include "run/frame_summary.hpp"
#include "run/frame_times.hpp"
#include "run/machine.hpp"
#include "run/orientation_warning.hpp"
#include "run/results.hpp"
#include "run/run_json.hpp"
#include "run/run_log.hpp"
#include "run/run_origin.hpp"
#include "run/still_points.hpp"
#include "run/watched_folder.hpp"
#include "track/device_choice.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

namespace fs = std::filesystem;
using track::Stopwatch;

/// Root mean square of (value - mean) / sigma over the `ok` points that have both; NaN without such points.
template <typename T>
double scatter_of(const Field& field, const NodeValues<T>& values, const NodeValues<float>& sigma) {
  const auto is_known = [&](std::size_t k) {
    return field.status[k] == Status::ok && !std::isnan(values[k]) && sigma[k] > 0;
  };
  double n = 0, mean = 0, squares = 0;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (is_known(k)) n += 1, mean += values[k];
  mean /= n;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (is_known(k)) squares += std::pow((values[k] - mean) / sigma[k], 2);
  return std::sqrt(squares / n);
}

std::array<double, kScatteredArrays.size()> scatter_of(const Field& field) {
  std::array<double, kScatteredArrays.size()> scatter{};
  for (std::size_t k = 0; k < scatter.size(); ++k)
    visit_values(field, kScatteredArrays[k], [&]<typename T>(const NodeValues<T>& values) {
      visit_values(field, *sigma_of(kScatteredArrays[k]), [&]<typename S>(const NodeValues<S>& sigma) {
        if constexpr (std::floating_point<T> && std::is_same_v<S, float>)
          scatter[k] = scatter_of(field, values, sigma);
      });
    });
  return scatter;
}

std::string time_text(const std::optional<double>& time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g s", time.value_or(NAN));
  return time ? text : "unknown";
}

/// Opens the frames of a job. The argument names those that an earlier run has processed.
using OpenFrames = std::function<std::unique_ptr<FrameSource>(const std::vector<std::string>& known)>;

/// Callbacks of a run; each may be empty.
struct Listeners {
  ProgressCallback progress;
  FieldCallback on_field;    ///< called with each measured frame
  WatchCallback on_written;  ///< called with each frame that is in the result
};

class Run {
 public:
  Run(const TrackJob& job, OpenFrames open_source, Listeners listeners, std::stop_token stop)
      : job_(job),
        options_(job.options),
        open_source_(std::move(open_source)),
        listeners_(std::move(listeners)),
        stop_(std::move(stop)),
        limit_(job.max_memory, job.output),
        results_(job) {
    note_origin(summary_);
  }

  TrackSummary execute() {
    open();
    if (summary_.was_complete) {
      summary_.frames_drawn = results_.complete_earlier(done_, first_current_, *source_);
      return std::move(summary_);
    }
    try {
      measure();
      finish();
    } catch (const FileError& failure) {  // thrown by writing: nothing more can be written
      if (!results_.begun() || summary_.frames.empty()) throw;
      summary_.interrupted = true;
      throw FileError(std::string(failure.what()) + " What was measured is in " +
                      results_.keep(summary_).string() + ": continue it with --resume.");
    }
    return std::move(summary_);
  }

 private:
  void measure() {
    try {
      if (summary_.frames_resumed > 0) go_on();
      track_all();
    } catch (const FileError&) {
      throw;
    } catch (...) {
      summary_.interrupted = true;
      if (results_.begun()) finish();
      throw;
    }
    if (summary_.interrupted && !results_.begun())
      throw Cancelled("Interrupted before the first frame was measured: nothing was written.");
    if (!results_.begun()) begin_results();
  }

  void open() {
    const Stopwatch watch;
    report("load", 0);
    const bool first_is_reference = job_.reference.empty();
    const std::optional<RunLog::Contents> earlier = results_.earlier();
    source_ = open_source_(earlier ? names_of(*earlier) : std::vector<std::string>());
    first_current_ = next_ = first_is_reference ? 1 : 0;
    if (const auto count = source_->count()) {
      if (*count <= first_current_) throw_too_few();
      summary_.frames_given = *count - first_current_;
    }
    times_.emplace(job_, *source_);
    done_.version = version();
    done_.settings = resume_settings(job_);
    done_.reference = first_is_reference ? source_->stamp(0) : file_stamp(job_.reference);
    if (earlier) take_over(*earlier);
    if (summary_.was_complete) return;
    options_.keep_state = needs_state();
    if (source_->count()) options_.expected_frames = *source_->count() - first_current_;
    starting_ = start_likely_device();
    if (source_->reads_in_parallel()) begin_reading();
    read_reference();
    if (!reader_) begin_reading();
    summary_.reference = first_is_reference ? source_->name(0) : job_.reference;
    summary_.output = job_.output;
    reference_seconds_ = load_seconds_ = watch.seconds();
    report("prepare", 0);
    stream_.emplace(options_, reference_, job_.roi, TrackStream::Callback(),
                    is_limited() ? 1 : FrameFeeder::kStreamCapacity);
    grid_ = stream_->grid();
    summary_.points = grid_.points();
    refuse_too_many_points();
    summary_.device = stream_->device();
    summary_.device_reason = stream_->device_reason();
    note_reference(summary_, reference_.size(), stream_->options());
    info_ = describe_result(job_, summary_, times_->in_seconds());
  }

  void read_reference() {
    StampedImage read = job_.reference.empty()
                            ? read_unchanged(*source_, 0)
                            : read_unchanged(
                                  job_.reference, [this] { return file_stamp(job_.reference); },
                                  [this] { return read_image(job_.reference); });
    if (summary_.frames_resumed > 0 && read.stamp != done_.reference) refuse_other_reference();
    done_.reference = std::move(read.stamp);
    reference_ = std::move(read.image);
  }

  [[noreturn]] void refuse_other_reference() const {
    refuse_to_resume("the reference is another file, or has changed");
  }

  /// Names of the processed frames, with the reference first if it is one of the frames.
  std::vector<std::string> names_of(const RunLog::Contents& earlier) const {
    std::vector<std::string> names;
    if (job_.reference.empty() && std::ranges::any_of(earlier.frames, &RunLog::Done::was_measured))
      names.push_back(results_.earlier_result().info().reference);
    for (const RunLog::Done& frame : earlier.frames)
      if (!names.empty() || !job_.reference.empty()) names.push_back(frame.summary.file);
    return names;
  }

  [[noreturn]] void refuse_to_resume(const std::string& why) const {
    throw UsageError("Cannot continue the result in " + job_.output.string() + ": " + why +
                     "; measure into another folder with -o, or start again with --force.");
  }

  /// Continues an earlier run. Throws UsageError if this run differs from it.
  void take_over(const RunLog::Contents& earlier) {
    if (earlier.version != done_.version)
      refuse_to_resume("it was begun by dic " + earlier.version + ", this is dic " + done_.version);
    if (earlier.settings != done_.settings)
      refuse_to_resume("other settings (" + differences(earlier.settings, done_.settings) + ")");
    if (earlier.reference != done_.reference) refuse_other_reference();
    if (job_.noise_floor) refuse_to_resume("a noise floor is measured in one run");
    for (const RunLog::Done& frame : earlier.frames) check_same(frame);
    done_.frames = earlier.frames;
    keep_whole_frames();
    for (const RunLog::Done& frame : done_.frames) summary_.frames.push_back(frame.summary);
    summary_.frames_resumed = std::ssize(summary_.frames);
    next_ = first_current_ + summary_.frames_resumed;
    summary_.was_complete = results_.earlier_is_complete() && next_ == source_->count();
  }

  void check_same(const RunLog::Done& frame) const {
    const std::string& name = frame.summary.file;
    if (const auto count = source_->count(); count && frame.index >= *count)
      refuse_to_resume(name + " was measured, but is not among the frames any more");
    if (source_->name(frame.index) != name)
      refuse_to_resume("frame " + std::to_string(frame.index - first_current_ + 1) + " was " + name +
                       ", now it is " + source_->name(frame.index));
    if (source_->stamp(frame.index) != frame.stamp) refuse_to_resume(name + " has changed since");
    if (times_->at(frame.index) != frame.summary.time)
      refuse_to_resume("the time of " + name + " is " + time_text(times_->at(frame.index)) +
                       " now, and was " + time_text(frame.summary.time));
  }

  /// Drops a last frame that is in one file of the result and not in another.
  void keep_whole_frames() {
    if (std::ranges::none_of(done_.frames, &RunLog::Done::was_measured)) return;
    const Result result = results_.earlier_result();
    if (result.info().strain.window != job_.options.strain.window ||
        result.info().strain.measure != job_.options.strain.measure)
      refuse_to_resume("its strain has been replaced by dic strain");
    std::int64_t measured = 0;
    const auto beyond = std::ranges::find_if(done_.frames, [&](const RunLog::Done& frame) {
      return frame.was_measured() && ++measured > result.frame_count();
    });
    done_.frames.erase(beyond, done_.frames.end());
  }

  /// Continues where the earlier run stopped: from its state, or, on a GPU, by measuring its last frame
  /// again.
  void go_on() {
    const auto last =
        std::ranges::find_if(done_.frames.rbegin(), done_.frames.rend(), &RunLog::Done::was_measured);
    if (last == done_.frames.rend()) return;
    if (results_.earlier_result().grid() != grid_) refuse_to_resume("other points (the ROI)");
    const std::int64_t index = last->index;
    const bool is_restored =
        stream_->restore(results_.state_after(index), [this](std::int64_t k) { return read_measured(k); });
    if (!is_restored && job_.options.reference_strategy != ReferenceStrategy::first)
      refuse_to_resume(
          "where its points are is not known (on a GPU, or after a power failure), and frames need "
          "those before but with the reference strategy first");
    begin_results();
    if (is_restored) return;
    stream_->push(source_->read(index));
    stream_->wait();
  }

  /// True if a state must be kept: with the reference strategy first, --resume can do without the state of
  /// the last frame.
  bool needs_state() const {
    const auto count = source_->count();
    return job_.options.reference_strategy != ReferenceStrategy::first || !count || *count - next_ > 1;
  }

  /// Throws if there are too many points for the memory limit, which does not cover points, before they take
  /// memory.
  void refuse_too_many_points() const {
    constexpr std::int64_t kBytesOfPoint = 900;
    if (!is_limited() || summary_.points * kBytesOfPoint < job_.max_memory) return;
    throw UsageError("The " + std::to_string(summary_.points) + " points alone take about " +
                     std::to_string((summary_.points * kBytesOfPoint) >> 20) +
                     " MB, and --max-memory allows " + std::to_string(job_.max_memory >> 20) +
                     " MB: choose a larger --step, or allow more memory.");
  }

  /// True if memory is limited; as few images as possible are then kept at a time.
  bool is_limited() const { return job_.max_memory > 0; }

  /// Reads the k-th measured frame, from 0.
  Image read_measured(std::int64_t k) const {
    for (const RunLog::Done& frame : done_.frames)
      if (frame.was_measured() && k-- == 0) return source_->read(frame.index);
    throw UsageError("The state of the run does not belong to its frames.");
  }

  /// Starts a GPU in the background if it is likely to be chosen, since this takes as long as reading the
  /// reference.
  std::future<void> start_likely_device() const {
    std::error_code unknown;  // frames may be given as a folder
    const auto bytes = fs::file_size(job_.reference.empty() ? job_.frames.front() : job_.reference, unknown);
    const bool one_image = !unknown && source_->reads_in_parallel();
    return track::start_device(options_, one_image ? bytes : 0);
  }

  void begin_reading() { reader_.emplace(*source_, next_, is_limited() ? 1 : frames_ahead(*source_, false)); }

  [[noreturn]] void throw_too_few() const {
    throw UsageError(
        "Only one frame was given (" + source_->name(0) +
        "): give the reference and at least one frame more, or name the reference with --reference.");
  }

  /// A frame that is ready to be written, with its result if it was measured.
  struct Processed {
    SourceFrame frame;
    std::optional<FrameResult> result;
  };

  /// Tracks all frames; decoding, measuring and writing run at the same time.
  void track_all() {
    const bool on_gpu = stream_->device() != "cpu";
    if (!is_limited()) reader_->read_more(frames_ahead(*source_, on_gpu));
    if (job_.noise_floor) noise_curve_.emplace(reference_);
    std::optional<Processed> last = track_frames();
    end_measuring();
    if (last) write(std::move(*last));
    summary_.interrupted = stop_.stop_requested();
    if (!summary_.interrupted && summary_.frames.empty()) throw_too_few();
  }

  /// Tracks all frames and writes all but the last one, which it returns: that one is written in the memory
  /// that measuring took.
  std::optional<Processed> track_frames() {
    FrameFeeder feeder(*reader_, job_.pictures != Pictures::none || job_.noise_floor, reference_, *stream_,
                       is_limited() ? 1 : FrameFeeder::kAhead);
    const std::stop_callback interrupt(stop_, [&] { feeder.stop(); });
    std::optional<Processed> last;
    while (std::optional<SourceFrame> frame = feeder.next()) {
      if (last) write(*std::exchange(last, {}));
      const bool is_last = frame->index + 1 == source_->count();
      last = measured(std::move(*frame));
      if (!last) break;
      if (!is_last) write(*std::exchange(last, {}));
      load_seconds_ = reference_seconds_ + feeder.waited_seconds();
    }
    return last;
  }

  int number_of(const SourceFrame& frame) const { return static_cast<int>(frame.index - first_current_ + 1); }

  /// Waits for the result of a frame; nothing if the run was interrupted before.
  std::optional<Processed> measured(SourceFrame frame) {
    if (!frame.error.empty()) return Processed{std::move(frame), {}};
    report("search", number_of(frame));
    std::optional<FrameResult> result = stream_->wait();
    if (!result) return {};
    frame.error = result->error;
    return Processed{std::move(frame), std::move(result)};
  }

  void write(Processed processed) {
    auto& [frame, result] = processed;
    frame.name = source_->name(frame.index);  // a watched file may have been renamed
    const int number = number_of(frame);
    FrameSummary entry;
    if (frame.error.empty()) entry = take(*result, frame, number);
    entry.error = frame.error;
    entry.file = frame.name;
    entry.time = times_->at(frame.index);
    RunLog::Done done{frame.index, frame.stamp, entry};
    summary_.frames.push_back(std::move(entry));
    if (results_.begun())
      note(std::move(done));
    else
      done_.frames.push_back(std::move(done));
    if (listeners_.on_written)
      listeners_.on_written(summary_.frames.back(), result ? result->field : Field(), number);
    points_done_ += summary_.points;
    report("load", number);
  }

  /// Publishes before it notifies listeners.
  void note(RunLog::Done done) {
    results_.note(std::move(done), summary_);
    if (listeners_.on_written) results_.publish(summary_);
  }

  void look_for_still_points(const FrameResult& result, const SourceFrame& frame) {
    Image again;
    still_points_.add(result.field, reference_, result.noise, summary_.options.refine.subset,
                      [&]() -> ImageView {
                        if (!frame.image.empty() || !source_->reads_in_parallel()) return frame.image;
                        try {
                          again = source_->read(frame.index);
                        } catch (const FileError&) {  // it is gone; what was measured is not
                        }
                        return again;
                      });
  }

  FrameSummary take(FrameResult& result, SourceFrame& frame, int number) {
    report("write", number);
    if (listeners_.on_field) listeners_.on_field(result.field, number, frame.name);
    const Stopwatch writing;
    if (!results_.begun()) begin_results();
    auto summary =
        std::async(std::launch::async, [&] { return summarize(result.field, info_.length_factor()); });
    if (noise_curve_) noise_curve_->add(frame.image, result.field);
    look_for_still_points(result, frame);
    const double time = times_->in_seconds() ? times_->at(frame.index).value_or(NAN) : number;
    results_.add(result.field, {frame.index, time, frame.name, number}, std::move(frame.image),
                 std::move(result.state));
    FrameSummary entry = summary.get();
    if (job_.noise_floor) entry.scatter = scatter_of(result.field);
    entry.noise = result.noise;
    entry.spans = result.spans;
    entry.spans.insert(entry.spans.end(), {frame.decode, writing.span("write")});
    entry.seconds = result.seconds.measuring() + writing.seconds();
    write_seconds_ += writing.seconds();
    measuring_ += result.seconds;
    return entry;
  }

  void finish() {
    summary_.seconds = measuring_;
    end_measuring();
    summary_.seconds.prepare += prepare_seconds_;
    summary_.seconds.load = load_seconds_;
    summary_.seconds.write = write_seconds_;
    if (noise_curve_) summary_.noise_curve = noise_curve_->result();
    summary_.seconds.total = total_.seconds();
    for (std::string warning : {still_points_.warning(), orientation_warning(*source_, job_.reference)})
      if (!warning.empty()) summary_.warnings.push_back(std::move(warning));
    results_.finish(summary_, *source_);
  }

  /// Frees the memory of images and points, which writing and drawing need.
  void end_measuring() {
    if (!stream_) return;
    summary_.kernels = stream_->kernels();
    prepare_seconds_ = stream_->prepare_seconds();
    reader_.reset();
    stream_.reset();
  }

  void begin_results() {
    if (job_.reference.empty()) info_.reference = summary_.reference = source_->name(0);
    results_.begin(grid_, info_, first_current_, source_->count(), done_);
    done_.frames.clear();
  }

  void report(const char* stage, int frame) const {
    if (!listeners_.progress) return;
    const std::optional<std::int64_t> count = source_ ? source_->count() : std::nullopt;
    const int frames = count ? static_cast<int>(*count - first_current_) : 0;
    listeners_.progress({stage, frame, frames, points_done_, total_.seconds()});
  }

  const TrackJob& job_;
  TrackOptions options_;  ///< options with what is known about the frames
  OpenFrames open_source_;
  Listeners listeners_;
  std::stop_token stop_;
  Stopwatch total_;
  MemoryLimit limit_;  ///< declared before all members that hold images
  Results results_;
  std::unique_ptr<FrameSource> source_;
  std::optional<FrameTimes> times_;
  std::int64_t first_current_ = 0;
  std::int64_t next_ = 0;       ///< index of the first frame to measure, in the source
  RunLog::Contents done_;       ///< processed frames, until the results are begun
  std::future<void> starting_;  ///< start of the device
  std::optional<ReadAhead> reader_;
  Image reference_;
  std::optional<TrackStream> stream_;  ///< exists until the last frame is measured
  Grid grid_;
  ResultInfo info_;
  TrackSummary summary_;
  std::optional<analysis::NoiseCurve> noise_curve_;
  StillPoints still_points_;
  std::int64_t points_done_ = 0;
  double reference_seconds_ = 0;  ///< part of load_seconds_ for the reference
  double load_seconds_ = 0;
  double write_seconds_ = 0;
  double prepare_seconds_ = 0;
  StageSeconds measuring_;  ///< sum over all frames
};

}  // namespace
}  // namespace dic::run

namespace dic {

double TrackJob::scale() const {
  return options.camera && options.camera->scale_mm_per_px() > 0 ? options.camera->scale_mm_per_px()
                                                                 : scale_mm_per_px;
}

std::vector<std::string> TrackJob::validate() const {
  std::vector<std::string> found = options.validate();
  if (frames.empty()) found.push_back("No frames were given: name at least two images, a folder or a video.");
  if (!std::isfinite(fps) || fps < 0)
    found.push_back("The frames per second must be a positive number (0 = as a video says).");
  if (fps > 0 && !times.empty())
    found.push_back("Give either the frames per second or the times of the frames, not both.");
  if (max_memory < 0) found.push_back("The memory must be 0 (all) or more bytes.");
  if (!std::ranges::is_sorted(times)) found.push_back("The times of the frames must not decrease.");
  if (!std::isfinite(scale_mm_per_px) || scale_mm_per_px < 0)
    found.push_back("The scale must be a positive number of mm per px (0 = no scale).");
  if (scale_mm_per_px > 0 && scale() != scale_mm_per_px)
    found.push_back("The camera knows the plane of the specimen, and so the scale: leave out --scale.");
  return found;
}

TrackSummary track_files(const TrackJob& job, const ProgressCallback& progress, std::stop_token stop,
                         const FieldCallback& on_field) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  const auto open = [&](const auto&) { return open_frames(job.frames); };
  return run::Run(job, open, {progress, on_field, {}}, std::move(stop)).execute();
}

TrackSummary watch_folder(TrackJob job, const WatchOptions& options, const WatchCallback& on_frame,
                          std::stop_token stop) {
  job.frames = {options.folder.string()};
  for (const auto& problems : {options.validate(), job.validate()})
    for (const std::string& problem : problems) throw UsageError(problem);
  const std::int64_t most = options.until > 0 ? options.until + (job.reference.empty() ? 1 : 0) : 0;
  const auto open = [&](const std::vector<std::string>& known) {
    return std::make_unique<run::WatchedFolder>(options, known, most, stop);
  };
  try {
    return run::Run(job, open, {{}, {}, on_frame}, {}).execute();
  } catch (const std::out_of_range&) {
    throw Cancelled("No image came into " + options.folder.string() + ": nothing was written.");
  }
}

}  // namespace dic

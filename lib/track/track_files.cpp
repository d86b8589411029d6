#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/info.hpp>
#include <dic/track.hpp>
#include <dic/track_stream.hpp>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "track/device_choice.hpp"
#include "track/frame_feeder.hpp"
#include "track/frame_times.hpp"
#include "track/noise_curve.hpp"
#include "track/results.hpp"
#include "track/run_json.hpp"
#include "track/stopwatch.hpp"
#include "track/strain_summary.hpp"

namespace dic {

namespace {

namespace fs = std::filesystem;
using track::Stopwatch;

/// Sums of terms(i) over the points with values. n independent sums at once, because each addition of one sum
/// waits for the addition before.
template <std::size_t n, typename Terms>
std::array<double, n> sums_of(const NodeValues<Status>& status, const Terms& terms) {
  std::array<double, n> sums{};
  for (std::size_t i = 0; i < status.size(); ++i) {
    if (!has_values(status[i])) continue;
    const std::array<double, n> add = terms(i);
    for (std::size_t k = 0; k < n; ++k) sums[k] += add[k];
  }
  return sums;
}

/// Root mean square of (value - mean) / sigma over the `ok` points that have them; NaN without any.
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

std::array<double, 5> scatter_of(const Field& field) {
  const StrainField& strain = field.strain;
  return {scatter_of(field, field.u, field.sigma_u), scatter_of(field, field.v, field.sigma_v),
          scatter_of(field, strain.exx, strain.sigma_exx), scatter_of(field, strain.eyy, strain.sigma_eyy),
          scatter_of(field, strain.exy, strain.sigma_exy)};
}

FrameSummary summarize(const Field& field, double length_factor) {
  auto [n, u, v, zncc, sigma_u, sigma_v] = sums_of<6>(field.status, [&](std::size_t i) {
    return std::array<double, 6>{
        1, field.u[i], field.v[i], field.zncc[i], field.sigma_u[i], field.sigma_v[i]};
  });
  for (double* mean : {&u, &v, &zncc, &sigma_u, &sigma_v}) *mean /= n;  // NaN where nothing was measured
  const auto squares = sums_of<3>(field.status, [&, u = u, v = v, zncc = zncc](std::size_t i) {
    const double du = field.u[i] - u, dv = field.v[i] - v, dz = field.zncc[i] - zncc;
    return std::array{du * du, dv * dv, dz * dz};
  });
  const auto deviation = [n = n](double sum) { return n > 1 ? std::sqrt(sum / (n - 1)) : n > 0 ? 0.0 : NAN; };
  FrameSummary summary;
  summary.strain = summarize_strain(field.strain, field.grid(), field.positions.get(), length_factor);
  summary.counts = field.counts();
  summary.mean_u = u * length_factor;
  summary.mean_v = v * length_factor;
  summary.mean_zncc = zncc;
  summary.sigma_u = sigma_u * length_factor;
  summary.sigma_v = sigma_v * length_factor;
  summary.sd_u = deviation(squares[0]) * length_factor;
  summary.sd_v = deviation(squares[1]) * length_factor;
  summary.sd_zncc = deviation(squares[2]);
  return summary;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// "2026-11-24T21:05:00+0000".
std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[64] = {};
  if (localtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts);
  return text;
}

class Run {
 public:
  Run(const TrackJob& job, const ProgressCallback& progress, std::stop_token stop,
      const FieldCallback& on_field)
      : job_(job), progress_(progress), stop_(std::move(stop)), on_field_(on_field), results_(job) {
    summary_.host = host_name();
    summary_.date = local_time();
  }

  TrackSummary execute() {
    open();
    try {
      track_all();
    } catch (const FileError&) {  // from writing: nothing more can be written
      throw;
    } catch (...) {
      summary_.interrupted = true;
      if (results_.begun()) finish();
      throw;
    }
    if (summary_.interrupted && !results_.begun())
      throw Cancelled("Interrupted before the first frame was measured: nothing was written.");
    if (!results_.begun()) begin_results();
    finish();
    return std::move(summary_);
  }

 private:
  void open() {
    const Stopwatch watch;
    report("load", 0);
    source_ = open_frames(job_.frames);
    const bool first_is_reference = job_.reference.empty();
    first_current_ = first_is_reference ? 1 : 0;
    if (const auto count = source_->count(); count && *count <= first_current_) throw_too_few();
    times_.emplace(job_, *source_);
    starting_ = start_likely_device();
    if (source_->reads_in_parallel()) begin_reading();
    reference_ = first_is_reference ? source_->read(0) : read_image(job_.reference);
    if (!reader_) begin_reading();
    summary_.reference = first_is_reference ? source_->name(0) : job_.reference;
    summary_.output = job_.output;
    reference_seconds_ = load_seconds_ = watch.seconds();
    report("prepare", 0);
    stream_.emplace(job_.options, reference_, job_.roi, TrackStream::Callback(),
                    FrameFeeder::kStreamCapacity);
    summary_.points = stream_->grid().points();
    summary_.image = reference_.size();
    info_ = describe_result();
  }

  /// In the background: this takes as long as reading the reference.
  std::future<void> start_likely_device() const {
    std::error_code unknown;  // frames may be named by a folder
    const auto bytes = fs::file_size(job_.reference.empty() ? job_.frames.front() : job_.reference, unknown);
    const bool one_image = !unknown && source_->reads_in_parallel();
    return track::start_device(job_.options.device, one_image ? bytes : 0, job_.options.step);
  }

  void begin_reading() { reader_.emplace(*source_, first_current_, frames_ahead(*source_, false)); }

  [[noreturn]] void throw_too_few() const {
    throw UsageError(
        "Only one frame was given (" + source_->name(0) +
        "): give the reference and at least one frame more, or name the reference with --reference.");
  }

  /// Frames are decoded, measured and written at the same time.
  void track_all() {
    const bool on_gpu = stream_->device() != "cpu";
    reader_->read_more(frames_ahead(*source_, on_gpu));
    if (job_.noise_floor) noise_curve_.emplace(reference_);
    FrameFeeder feeder(*reader_, job_.pictures != Pictures::none || job_.noise_floor, reference_, *stream_);
    const std::stop_callback interrupt(stop_, [&] { feeder.stop(); });
    while (std::optional<SourceFrame> frame = feeder.next()) {
      if (!finish(std::move(*frame))) break;
      load_seconds_ = reference_seconds_ + feeder.waited_seconds();
    }
    summary_.interrupted = stop_.stop_requested();
    if (!summary_.interrupted && summary_.frames.empty()) throw_too_few();
  }

  /// False where the run was interrupted before the frame was measured.
  bool finish(SourceFrame frame) {
    const int number = static_cast<int>(frame.index - first_current_ + 1);
    FrameSummary entry;
    if (frame.error.empty()) {
      report("search", number);
      std::optional<FrameResult> result = stream_->wait();
      if (!result) return false;
      frame.error = result->error;
      if (frame.error.empty()) entry = take(*result, frame, number);
    }
    entry.error = frame.error;
    entry.file = frame.name;
    entry.time = times_->at(frame.index);
    summary_.frames.push_back(std::move(entry));
    points_done_ += summary_.points;
    report("load", number);
    return true;
  }

  FrameSummary take(const FrameResult& result, SourceFrame& frame, int number) {
    report("write", number);
    if (on_field_) on_field_(result.field, number, frame.name);
    const Stopwatch writing;
    if (!results_.begun()) begin_results();
    auto summary =
        std::async(std::launch::async, [&] { return summarize(result.field, info_.length_factor()); });
    if (noise_curve_) noise_curve_->add(frame.image, result.field);
    const double time = times_->in_seconds() ? times_->at(frame.index).value_or(NAN) : number;
    results_.add(result.field, {frame.index, time, frame.name}, std::move(frame.image));
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
    summary_.seconds.prepare += stream_->prepare_seconds();
    summary_.seconds.load = load_seconds_;
    summary_.seconds.write = write_seconds_;
    summary_.seconds.total = total_.seconds();
    summary_.device = stream_->device();
    summary_.options = stream_->options();
    summary_.gauge =
        (summary_.options.strain.window - 1) * summary_.options.step + summary_.options.refine.subset;
    summary_.device_reason = stream_->device_reason();
    summary_.kernels = stream_->kernels();
    if (noise_curve_) summary_.noise_curve = noise_curve_->result();
    // Pictures are drawn in what the images and points took.
    reader_.reset();
    stream_.reset();
    results_.finish(summary_);
  }

  void begin_results() { results_.begin(stream_->grid(), info_, first_current_, source_->count()); }

  ResultInfo describe_result() const {
    ResultInfo info;
    info.time_unit = times_->in_seconds() ? "s" : "1";
    info.subset = stream_->options().refine.subset;
    info.image = reference_.size();
    info.scale_mm_per_px = job_.scale();
    info.strain = job_.options.strain;
    info.version = version();
    info.command = job_.command;
    info.reference = summary_.reference;
    info.settings_json = settings_json(job_);
    return info;
  }

  void report(const char* stage, int frame) const {
    if (!progress_) return;
    const std::optional<std::int64_t> count = source_ ? source_->count() : std::nullopt;
    const int frames = count ? static_cast<int>(*count - first_current_) : 0;
    progress_({stage, frame, frames, points_done_, total_.seconds()});
  }

  const TrackJob& job_;
  const ProgressCallback& progress_;
  std::stop_token stop_;
  const FieldCallback& on_field_;
  Stopwatch total_;
  Results results_;
  std::unique_ptr<FrameSource> source_;
  std::optional<FrameTimes> times_;
  std::int64_t first_current_ = 0;
  std::future<void> starting_;  ///< the device
  std::optional<ReadAhead> reader_;
  Image reference_;
  std::optional<TrackStream> stream_;
  ResultInfo info_;
  TrackSummary summary_;
  std::optional<track::NoiseCurve> noise_curve_;
  std::int64_t points_done_ = 0;
  double reference_seconds_ = 0;  ///< of load_seconds_
  double load_seconds_ = 0;
  double write_seconds_ = 0;
  StageSeconds measuring_;  ///< of all frames
};

}  // namespace

std::string_view to_string(Pictures pictures) {
  return pictures == Pictures::some ? "some" : pictures == Pictures::all ? "all" : "none";
}

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
  return Run(job, progress, std::move(stop), on_field).execute();
}

}  // namespace dic

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <dic/camera_rig.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/live.hpp>
#include <dic/stereo_files.hpp>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "live/border_note.hpp"
#include "live/camera.hpp"
#include "live/camera_pair.hpp"
#include "live/line_sender.hpp"
#include "live/live_line.hpp"
#include "live/meter.hpp"
#include "live/recorder.hpp"
#include "live/result_writer.hpp"
#include "live/waiting_frames.hpp"
#include "run/frame_summary.hpp"
#include "run/run_origin.hpp"
#include "run/stereo_json.hpp"

namespace dic {
namespace {

using live::CameraFrame;
using live::LiveCamera;
using Clock = std::chrono::steady_clock;

/// How long the camera is waited for at a time: stops are seen as often.
constexpr std::chrono::milliseconds kTick{50};
/// Time in which a camera must send its first frame.
constexpr std::chrono::seconds kFirstFrame{10};

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// Number of frames that half of the free memory holds.
std::size_t frames_in_memory(const Image& frame) {
  const auto free_bytes =
      static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double bytes =
      static_cast<double>(frame.width()) * frame.height() * static_cast<double>(size_of(frame.type()));
  return static_cast<std::size_t>(std::max(free_bytes / 2 / bytes, 4.0));
}

/// Settings that measurements with two cameras do not have.
void check_pair(const TrackJob& job, const LiveOptions& options) {
  StereoOptions stereo = options.stereo;
  stereo.track = job.options;
  for (const std::string& problem : stereo.validate()) throw UsageError(problem);
  if (!job.reference.empty())
    throw UsageError("The first frames of two cameras are their reference: name no other one.");
  if (job.scale_mm_per_px > 0)
    throw UsageError("The calibration of two cameras has the scale: leave the scale out.");
  if (job.csv && job.csv_style != CsvStyle::native)
    throw UsageError("Tables of two cameras have one style: leave the style out.");
  if (std::error_code failed; !std::filesystem::exists(options.calibration, failed))
    read_camera_rig(options.calibration);  // tells what is wrong
}

void check(const TrackJob& job, const LiveOptions& options) {
  TrackJob checked = job;
  checked.frames = {options.camera};
  for (const auto& problems : {options.validate(), checked.validate()})
    for (const std::string& problem : problems) throw UsageError(problem);
  if (!options.right_camera.empty()) check_pair(job, options);
  if (job.pictures == Pictures::all)
    throw UsageError(
        "Pictures of all frames cannot be drawn while a camera is measured: draw them from the result "
        "afterwards.");
}

}  // namespace

/// One thread takes frames from the camera, one measures them; recorder and writer have their own.
struct LiveStream::Impl {
  TrackJob job;
  LiveOptions options;
  live::LineContext lines;
  live::OpenCamera open_camera;
  LiveSummary summary;
  std::unique_ptr<LiveCamera> camera;
  std::unique_ptr<live::LineSender> sender;
  std::unique_ptr<live::Recorder> recorder;
  std::optional<live::Meter> meter;
  Size image;
  std::int64_t reference_time = 0;  ///< camera's clock, ns; constant while frames are measured
  std::unique_ptr<live::ResultWriter> writer;
  std::unique_ptr<live::WaitingFrames> waiting;
  std::stop_source stopping;
  Clock::time_point begin;

  mutable std::mutex mutex;  ///< guards all members below
  std::condition_variable changed;
  std::deque<LiveFrame> ready;
  static constexpr std::size_t kMostReady = 16;
  bool is_abandoned = false;  ///< nobody takes results any more
  bool has_ended = false;     ///< no further result follows
  LiveDrops drops, told_drops;
  std::int64_t produced = 0;
  /// Counts of cameras that have vanished, and those of this camera when counting began.
  std::int64_t earlier_produced = 0, produced_at_begin = 0;
  LiveDrops earlier_losses, losses_at_begin;
  std::string problem;
  std::exception_ptr failure;

  // Used by the thread of the camera alone.
  std::int64_t accepted = 0;                    ///< frames that were taken
  Clock::time_point asked{};                    ///< when the last frame was asked for
  std::int64_t id_offset = 0, time_offset = 0;  ///< added to ids and times (ns) of a camera that is back
  std::int64_t last_id = 0, last_time = 0;      ///< of the last frame, with the offsets
  std::chrono::system_clock::time_point last_received;
  bool is_reopened = false;
  std::int64_t unpaired_before = 0;  ///< drops.camera when the last pair came
  bool is_pairing_doubted = false;   ///< said since then that no pair comes

  std::once_flag finishing;
  std::thread acquirer, measurer;

  Impl(const TrackJob& wanted, const LiveOptions& wanted_options, live::OpenCamera open)
      : job(wanted), options(wanted_options), open_camera(std::move(open)) {
    check(job, options);
    run::note_origin(summary.track);
    sender = std::make_unique<live::LineSender>(options.udp, options.tcp);
    const double scale = job.scale();
    lines = {job.roi.points,          options.extensometers,         scale > 0 ? scale : 1,
             scale > 0 ? "mm" : "px", !options.right_camera.empty(), options.stereo.axes};
    job.resume = false;
    if (options.only_extensometers || !job.roi.points.empty()) add_positions();
    job.frames = {options.camera};
    // Before the camera is opened: a folder that cannot be used is told at once.
    if (!options.record.empty())
      recorder = std::make_unique<live::Recorder>(options.record, lines.is_surface);
    camera = open_cameras();
    summary.camera = camera->name();
    summary.settings = camera->settings();
    take_reference();
    tell(live::start_line(lines, summary.track, summary), "start");
    if (meter->of_pairs()) doubt_calibration(*meter->of_pairs());
    if (const std::string near_border =
            live::border_note(lines, meter->grid(), meter->options().refine.subset, image);
        !near_border.empty())
      note("note", near_border);
    for (const CameraSetting& setting : summary.settings)
      if (!setting.is_kept)
        note("note", "The camera took " + setting.actual + " for " + setting.name + " instead of " +
                         setting.asked + ".");
    begin = Clock::now();
    acquirer = std::thread([this] { acquire(); });
    measurer = std::thread([this] { measure(); });
  }

  ~Impl() {
    try {
      finish();
    } catch (...) {  // who wants to know calls finish()
    }
  }

  // ---- Before measuring ----

  /// Adds what is measured beside the points that were asked for.
  void add_positions() {
    std::vector<Position>& points = job.roi.points;
    for (const auto& ends : options.extensometers) points.insert(points.end(), ends.begin(), ends.end());
    if (const auto& axes = options.stereo.axes_points)
      points.insert(points.end(), axes->begin(), axes->end());
  }

  /// Opens the camera, or both as one.
  std::unique_ptr<LiveCamera> open_cameras() const {
    auto left = open_camera(options.camera, options.settings);
    if (options.right_camera.empty()) return left;
    return std::make_unique<live::CameraPair>(std::move(left),
                                              open_camera(options.right_camera, options.settings));
  }

  void take_reference() {
    camera->start();
    const CameraFrame first = first_frame();
    const Image reference = job.reference.empty() ? copy_of(first.image->view()) : read_image(job.reference);
    if (reference.size() != first.image->size() || reference.type() != first.image->type())
      throw UsageError("The camera sends frames of " + describe(*first.image) + ", the reference has " +
                       describe(reference) + ": take the reference with the same camera and settings.");
    image = reference.size();
    reference_time = first.camera_time;
    remember(first);
    summary.track.reference = job.reference.empty() ? live::Recorder::name_of(first.id) : job.reference;
    if (recorder && job.reference.empty()) recorder->add(first, 0);
    meter.emplace(job, options, reference, first.right.get());
    run::note_reference(summary.track, image, meter->options());
    summary.track.device = meter->device();
    summary.track.device_reason = meter->device_reason();
    summary.track.points = meter->grid().points();
    summary.track.output = job.output;
    if (!job.output.empty()) begin_result();
    const std::size_t most = options.drop == DropPolicy::stop
                                 ? static_cast<std::size_t>(options.settings.buffers)
                                 : frames_in_memory(reference);
    waiting = std::make_unique<live::WaitingFrames>(options.drop, most);
    forget_what_has_arrived();
  }

  void begin_result() {
    ResultInfo info = run::describe_result(job, summary.track, true);
    std::optional<live::ResultWriter::PairFiles> pairs;
    if (const StereoTracker* tracker = meter->of_pairs()) {
      info.settings_json = run::stereo_settings_json(job_of_pairs());
      pairs.emplace();
      if (options.stereo.correct_rig && tracker->rig_correction())
        pairs->corrected_rig = tracker->rig_correction()->rig;
    }
    writer = std::make_unique<live::ResultWriter>(job, meter->grid(), std::move(info), summary.track,
                                                  std::move(pairs));
  }

  /// The job of `dic stereo` that measures the recorded pairs in the same way.
  StereoJob job_of_pairs() const {
    StereoJob pairs;
    pairs.track = job;
    pairs.right = {options.right_camera};
    if (!options.record.empty()) {
      pairs.track.frames = {(options.record / "left").string()};
      pairs.right = {(options.record / "right").string()};
    }
    pairs.calibration = options.calibration;
    pairs.options = options.stereo;
    return pairs;
  }

  /// Says if the matches of the references contradict the calibration.
  void doubt_calibration(const StereoTracker& tracker) {
    constexpr double kDoubtful = 0.1;  // px, as for dic stereo
    const double median = tracker.reference().epipolar_median;
    if (!(median > kDoubtful)) return;
    char text[16];
    std::snprintf(text, sizeof text, "%.2g", median);
    note("note",
         "The matches of the references lie " + std::string(text) +
             " px from their epipolar lines (median): the cameras have moved since their calibration, "
             "or the two references were not taken at the same moment; positions are as uncertain as "
             "that.");
  }

  static std::string describe(const Image& image) {
    return std::to_string(image.width()) + "x" + std::to_string(image.height()) + " px of type " +
           std::string(to_string(image.type()));
  }

  CameraFrame first_frame() {
    const auto end = Clock::now() + kFirstFrame;
    while (Clock::now() < end) {
      if (options.settings.trigger == "software") camera->trigger();
      if (auto frame = camera->next(std::chrono::seconds(1))) return *frame;
    }
    throw DeviceError("The camera " + camera->name() + " sent no whole frame within 10 s: " +
                      (options.settings.trigger == "free" ? "check its connection and the size of packets."
                                                          : "give it triggers."));
  }

  /// Frames that arrived while the reference was prepared are not counted.
  void forget_what_has_arrived() {
    while (camera->next(std::chrono::milliseconds(0))) {
    }
    produced_at_begin = camera->produced();
    losses_at_begin = camera->losses();
  }

  // ---- The thread of the camera ----

  void acquire() {
    try {
      while (!stopping.stop_requested() && !is_time_over()) take_frame();
    } catch (...) {
      fail(std::current_exception());
    }
    if (camera) {
      camera->stop();
      take_counts();
    }
    waiting->close();
  }

  bool is_time_over() const {
    return options.until_seconds > 0 &&
           std::chrono::duration<double>(Clock::now() - begin).count() >= options.until_seconds;
  }

  void take_frame() {
    try {
      if (options.settings.trigger == "software" && !ask_for_frame()) return;
      std::optional<CameraFrame> frame = camera->next(kTick);
      take_counts();
      if (frame)
        take(std::move(*frame));
      else if (lines.is_surface)
        doubt_pairing();
    } catch (const live::CameraLost& lost) {
      take_counts();
      wait_for_camera(lost.what());
    }
  }

  /// Asks for a frame when the last one was measured. Returns false if it is not time yet.
  bool ask_for_frame() {
    if (!waiting->wait_until_idle(kTick) || stopping.stop_requested()) return false;
    const double period = 1 / options.settings.frame_rate.value_or(1e9);
    const auto next =
        asked + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(period));
    std::this_thread::sleep_until(std::min(next, Clock::now() + kTick));
    if (Clock::now() < next) return false;
    asked = Clock::now();
    camera->trigger();
    return true;
  }

  void take_counts() {
    const LiveDrops losses = camera->losses() - losses_at_begin;
    const std::lock_guard lock(mutex);
    produced = earlier_produced + camera->produced() - produced_at_begin;
    drops.camera = earlier_losses.camera + losses.camera;
    drops.network = earlier_losses.network + losses.network;
    drops.no_buffer = earlier_losses.no_buffer + losses.no_buffer;
    if (options.drop == DropPolicy::stop && drops.camera + drops.network + drops.no_buffer > 0)
      end_early("A frame was lost before it reached this computer's memory, and no frame may be lost.");
  }

  /// Says once if many frames of two cameras have found no partner.
  void doubt_pairing() {
    constexpr std::int64_t kMany = 100;
    {
      const std::lock_guard lock(mutex);
      if (is_pairing_doubted || drops.camera - unpaired_before < kMany) return;
    }
    is_pairing_doubted = true;
    note("note",
         "100 frames came without one of the other camera from the same moment: check that one trigger "
         "starts both cameras, and that it pauses longer than the time between their arrivals.");
  }

  void take(CameraFrame frame) {
    count_on(frame);
    const bool is_recorded = !recorder || recorder->add(frame, time_of(frame));
    const auto added = waiting->add(std::move(frame));
    const std::lock_guard lock(mutex);
    unpaired_before = drops.camera;
    is_pairing_doubted = false;
    if (!is_recorded) ++drops.recorder;
    if (!is_recorded && options.drop == DropPolicy::stop)
      end_early("The recording cannot keep up with the camera, and no frame may be lost.");
    if (added != live::WaitingFrames::Added::waits) ++drops.measuring;
    if (added == live::WaitingFrames::Added::overflows)
      end_early(options.drop == DropPolicy::stop
                    ? "The measurement cannot keep up with the camera, and no frame may be lost: measure "
                      "fewer points, or allow more buffers."
                    : "Half of the free memory is full of frames that wait: measure fewer points, or let the "
                      "camera take fewer frames.");
    ++accepted;
    if (options.drop != DropPolicy::newest && accepted == options.until_frames) stopping.request_stop();
  }

  /// Ids and times go on where a camera begins anew after it had vanished: by one, and by this computer's
  /// clock.
  void count_on(CameraFrame& frame) {
    if (is_reopened) {
      id_offset = last_id + 1 - frame.id;
      time_offset =
          last_time + (frame.received - last_received) / std::chrono::nanoseconds(1) - frame.camera_time;
      is_reopened = false;
    }
    frame.id += id_offset;
    frame.camera_time += time_offset;
    remember(frame);
  }

  void remember(const CameraFrame& frame) {
    last_id = frame.id;
    last_time = frame.camera_time;
    last_received = frame.received;
  }

  /// The caller holds the lock.
  void end_early(const std::string& why) {
    if (problem.empty()) problem = why;
    stopping.request_stop();
  }

  double time_of(const CameraFrame& frame) const {
    return static_cast<double>(frame.camera_time - reference_time) / 1e9;
  }

  void wait_for_camera(const std::string& what) {
    note("lost", what);  // told first: closing a camera that does not answer takes seconds
    camera.reset();
    {
      const std::lock_guard lock(mutex);
      earlier_produced = produced;
      earlier_losses = drops;
    }
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                        std::min(options.wait_for_camera, 1e8)));
    while (!stopping.stop_requested() && !is_time_over() && Clock::now() < end) {
      if (reopen())
        return note("back", "The camera " + summary.camera +
                                " is back; frames that it took meanwhile are not counted.");
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    const std::lock_guard lock(mutex);
    end_early(what + " What was measured is complete.");
  }

  bool reopen() {
    try {
      camera = open_cameras();
      camera->start();
      produced_at_begin = camera->produced();
      losses_at_begin = camera->losses();
      is_reopened = true;
      return true;
    } catch (const DeviceError&) {
      camera.reset();
      return false;
    }
  }

  // ---- The thread that measures ----

  void measure() {
    try {
      while (std::optional<CameraFrame> frame = waiting->take()) {
        if (is_enough()) {
          const std::lock_guard lock(mutex);
          ++drops.measuring;
          continue;
        }
        measure(*frame);
        if (is_enough()) stopping.request_stop();
      }
    } catch (...) {
      fail(std::current_exception());
      const std::int64_t left = waiting->clear();
      const std::lock_guard lock(mutex);
      drops.measuring += left + 1;
    }
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  }

  bool is_enough() const { return options.until_frames > 0 && summary.results >= options.until_frames; }

  void measure(const CameraFrame& taken) {
    LiveFrame frame;
    FrameSummary entry;
    StageSeconds spent;
    frame.id = taken.id;
    frame.image = taken.image;
    frame.right = taken.right;
    frame.name = live::Recorder::name_of(taken.id);
    frame.time = time_of(taken);
    frame.host_time = seconds_since_1970(taken.received);
    try {
      live::Meter::Measured result = meter->measure(taken);
      entry = run::summarize(result.field, lines.length_factor);
      entry.noise = result.noise;
      entry.seconds = result.seconds.measuring();
      spent = result.seconds;
      frame.epipolar_median = result.epipolar_median;
      frame.field = std::make_shared<const Field>(std::move(result.field));
    } catch (const UsageError& e) {
      frame.error = entry.error = e.what();
    }
    entry.file = frame.name;
    entry.time = frame.time;
    frame.number = static_cast<int>(++summary.results);
    deliver(std::move(frame), std::move(entry), taken, spent);
  }

  void deliver(LiveFrame frame, FrameSummary entry, const CameraFrame& taken, const StageSeconds& spent) {
    {
      const std::lock_guard lock(mutex);
      frame.drops = drops - told_drops;
      told_drops = drops;
    }
    frame.latency = seconds_since_1970(std::chrono::system_clock::now()) - frame.host_time;
    frame.line = live::frame_line(lines, frame, entry);
    const auto field = frame.field;
    send(std::move(frame));
    if (!writer)
      summary.track.seconds += spent;
    else if (!writer->add(
                 {field, job.pictures == Pictures::none ? nullptr : taken.image, std::move(entry), spent}))
      stopping.request_stop();
  }

  // ---- What has happened ----

  void note(const std::string& event, const std::string& text) {
    tell(live::note_line(event, text), event, text);
  }

  void tell(const std::string& line, const std::string& event, const std::string& text = {}) {
    LiveFrame told;
    told.event = event;
    told.text = text;
    told.line = line;
    send(std::move(told));
  }

  std::mutex sending;  ///< serializes send()
  void send(LiveFrame frame) {
    const std::lock_guard one(sending);
    sender->send(frame.line);
    std::unique_lock lock(mutex);
    const bool may_wait = frame.event.empty();
    changed.wait(lock, [&] { return ready.size() < kMostReady || is_abandoned || !may_wait; });
    if (!is_abandoned) ready.push_back(std::move(frame));
    changed.notify_all();
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::move(error);
    stopping.request_stop();
  }

  std::optional<LiveFrame> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty() || has_ended; });
    if (ready.empty()) return {};
    LiveFrame frame = std::move(ready.front());
    ready.pop_front();
    changed.notify_all();
    return frame;
  }

  void finish() {
    std::call_once(finishing, [this] { end(); });
    if (failure) std::rethrow_exception(failure);
  }

  void end() {
    stopping.request_stop();
    {
      const std::lock_guard lock(mutex);
      is_abandoned = true;
      changed.notify_all();
    }
    for (std::thread* thread : {&acquirer, &measurer})
      if (thread->joinable()) thread->join();
    camera.reset();
    if (recorder) summary.recorded = recorder->finish();
    summary.produced = produced;
    summary.drops = drops;
    summary.problem = problem.empty() && recorder ? recorder->problem() : problem;
    summary.line = live::end_line(summary);
    if (sender) sender->send(summary.line);
    if (writer) writer->close();  // from here on its thread does not use summary.track
    summary.track.interrupted = !problem.empty();
    if (meter) summary.track.kernels = meter->kernels();
    meter.reset();
    try {
      if (writer) writer->finish();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
};

LiveStream::LiveStream(const TrackJob& job, const LiveOptions& options)
    : impl_(std::make_unique<Impl>(job, options, live::open_camera)) {}
LiveStream::LiveStream(const TrackJob& job, const LiveOptions& options, const live::OpenCamera& open)
    : impl_(std::make_unique<Impl>(job, options, open)) {}
LiveStream::~LiveStream() = default;

std::optional<LiveFrame> LiveStream::next() { return impl_->next(); }
void LiveStream::stop() { impl_->stopping.request_stop(); }
LiveSummary LiveStream::finish() {
  impl_->finish();
  return impl_->summary;
}
int LiveStream::tcp_port() const { return impl_->sender->tcp_port(); }
std::vector<CameraSetting> LiveStream::settings() const { return impl_->summary.settings; }

}  // namespace dic

#include "view/measurement.hpp"

#include <dic/error.hpp>
#include <dic/likely_reason.hpp>
#include <utility>

namespace dic::app {

void Measurement::start(TrackJob job) {
  const std::lock_guard lock(mutex_);
  if (state_ == "running") throw UsageError("A measurement is under way: cancel it first.");
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  if (thread_.joinable()) thread_.join();  // the measurement has ended
  state_ = "running";
  error_.clear();
  progress_ = {};
  counts_ = {};
  live_ = nullptr;
  finished_.reset();
  thread_ = std::jthread([this, job = std::move(job)](const std::stop_token& stop) { run(job, stop); });
}

namespace {

/// All warnings about a finished run, sentence after sentence.
std::string warnings_of(const TrackJob& job, const TrackSummary& summary) {
  std::string text = unmatched_warning(job, summary);
  for (const std::string& warning : summary.warnings) text += (text.empty() ? "" : " ") + warning;
  return text;
}

}  // namespace

void Measurement::run(const TrackJob& job, const std::stop_token& stop) {
  const auto show = [&](const Progress& progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  };
  const auto take_field = [&](const Field& field, int number, const std::string& name) {
    take(field, number, name, job.scale());
  };
  try {
    const TrackSummary summary = track_files(job, show, stop, take_field);
    {
      const std::lock_guard lock(mutex_);
      finished_ = job.output;
    }
    end(summary.interrupted ? "cancelled" : "done", warnings_of(job, summary));
  } catch (const Cancelled&) {
    end("cancelled");
  } catch (const std::exception& e) {
    end("failed", e.what());
  }
}

void Measurement::take(const Field& field, int number, const std::string& name, double scale) {
  // A copy: the field is written and given back meanwhile.
  auto live = std::make_shared<const LiveField>(LiveField{field, number, name, scale});
  const auto counts = field.counts();
  const std::lock_guard lock(mutex_);
  live_ = std::move(live);
  for (int status = 0; status < kStatusCount; ++status) counts_[status] += counts[status];
}

void Measurement::end(const std::string& state, const std::string& error) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  error_ = error;  // live_ stays: the page may be asking for its arrays
}

void Measurement::cancel() {
  const std::lock_guard lock(mutex_);
  thread_.request_stop();
}

bool Measurement::running() const {
  const std::lock_guard lock(mutex_);
  return state_ == "running";
}

Json Measurement::progress() const {
  const std::lock_guard lock(mutex_);
  Json counts = Json::object();
  for (int status = 0; status < kStatusCount; ++status)
    counts[std::string(to_string(static_cast<Status>(status)))] = counts_[status];
  return {{"state", state_},
          {"error", error_},
          {"stage", progress_.stage},
          {"frame", progress_.frame},
          {"frames", progress_.frames},
          {"points_per_second",
           progress_.seconds > 0 ? static_cast<double>(progress_.done) / progress_.seconds : 0.0},
          {"counts", counts},
          {"live", live_ ? live_->number : 0},
          {"has_result", finished_.has_value()},
          {"output", finished_ ? finished_->string() : std::string()}};
}

std::shared_ptr<const LiveField> Measurement::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

std::optional<std::filesystem::path> Measurement::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

}  // namespace dic::app

#include "live/result_writer.hpp"

#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <utility>

namespace dic::live {
namespace {

/// The frames of a camera are gone when they were measured.
class NoFrames final : public FrameSource {
 public:
  std::optional<std::int64_t> count() const override { return {}; }
  std::string name(std::int64_t) const override { return {}; }
  std::filesystem::path file(std::int64_t) const override { return {}; }
  Image read(std::int64_t) override { throw UsageError("The frames of a camera cannot be read again."); }
  bool reads_in_parallel() const override { return true; }
};

}  // namespace

ResultWriter::ResultWriter(const TrackJob& job, const Grid& grid, ResultInfo info, TrackSummary& summary,
                           std::optional<PairFiles> pairs)
    : grid_(grid),
      info_(std::move(info)),
      summary_(summary),
      pairs_(std::move(pairs)),
      results_(job, false),
      thread_([this] { write_all(); }) {}

ResultWriter::~ResultWriter() { close(); }

bool ResultWriter::add(Entry entry) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return entries_.size() < kMostWaiting || failure_; });
  if (failure_) return false;
  entries_.push_back(std::move(entry));
  changed_.notify_all();
  return true;
}

void ResultWriter::close() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ResultWriter::finish() {
  close();
  try {
    if (failure_) std::rethrow_exception(failure_);
    complete();
  } catch (const FileError& failure) {
    if (!results_.begun()) throw;
    surface_.reset();  // removes what cannot be completed
    summary_.interrupted = true;
    throw FileError(std::string(failure.what()) + " What was measured is in " +
                    results_.keep(summary_).string() + ".");
  }
}

void ResultWriter::complete() {
  NoFrames none;
  if (!results_.begun()) begin();
  if (surface_) surface_->finish();
  results_.finish(summary_, none);
}

void ResultWriter::begin() {
  results_.begin(grid_, info_, 0, {}, {});
  if (!pairs_) return;
  surface_.emplace(results_.claim("surface.vtkhdf"), info_);
  if (pairs_->corrected_rig) write_camera_rig(results_.claim("stereo.json"), *pairs_->corrected_rig);
}

void ResultWriter::write_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !entries_.empty() || is_ended_; });
    if (entries_.empty()) return;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    changed_.notify_all();
    lock.unlock();
    std::exception_ptr failure;
    try {
      write(std::move(entry));
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!failure) continue;
    failure_ = failure;
    changed_.notify_all();
    return;
  }
}

void ResultWriter::write(Entry entry) {
  if (!results_.begun()) begin();
  const std::int64_t index = written_++;
  summary_.seconds += entry.seconds;
  if (std::ssize(summary_.frames) < kMostDescribed)
    summary_.frames.push_back(entry.summary);
  else
    ++summary_.frames_beyond;
  if (entry.field && surface_) surface_->add(*entry.field, entry.summary.time.value_or(NAN));
  if (entry.field)
    results_.add(*entry.field, {index, entry.summary.time.value_or(NAN), entry.summary.file, index + 1},
                 entry.image ? copy_of(entry.image->view()) : Image(), {});
  results_.note({index, {}, std::move(entry.summary)}, summary_);
}

}  // namespace dic::live

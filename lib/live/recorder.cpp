#include "live/recorder.hpp"

#include <cerrno>
#include <cstring>
#include <dic/image_io.hpp>
#include <utility>

namespace dic::live {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLeft = "left", *kRight = "right";  ///< folders of the frames of two cameras

std::FILE* open_table(const fs::path& folder, bool of_pairs) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw FileError("The folder of the recording cannot be made: " + folder.string() + " (" +
                    failed.message() + ").");
  if (!fs::is_empty(folder, failed) || failed)
    throw FileError("The folder of the recording, " + folder.string() +
                    ", is not empty: choose another one, so that no frames are mixed.");
  std::FILE* table = std::fopen((folder / "frames.csv").c_str(), "w");
  if (!table)
    throw FileError("The recording cannot be written to " + folder.string() + " (" + std::strerror(errno) +
                    ").");
  for (const char* side : {kLeft, kRight})
    if (of_pairs) fs::create_directory(folder / side);
  std::fputs("time [s],host time [s],id,file\n", table);
  return table;
}

}  // namespace

Recorder::Recorder(fs::path folder, bool of_pairs)
    : folder_(std::move(folder)),
      table_(open_table(folder_, of_pairs), std::fclose),
      thread_([this] { write_all(); }) {}

Recorder::~Recorder() { finish(); }

std::string Recorder::name_of(std::int64_t id) {
  char name[40];
  std::snprintf(name, sizeof name, "frame_%09lld.pgm", static_cast<long long>(id));
  return name;
}

bool Recorder::add(const CameraFrame& frame, double time) {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty() || frames_.size() >= kMostWaiting) return false;
  frames_.push_back({frame, time});
  changed_.notify_all();
  return true;
}

std::int64_t Recorder::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return written_;
}

std::string Recorder::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Recorder::write_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !frames_.empty() || is_ended_; });
    if (frames_.empty()) return;
    const Waiting next = std::move(frames_.front());
    frames_.pop_front();
    if (!problem_.empty()) continue;
    lock.unlock();
    std::string problem;
    try {
      write(next);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    lock.lock();
    problem_ = problem;
    if (problem.empty()) ++written_;
  }
}

void Recorder::write(const Waiting& waiting) {
  const CameraFrame& frame = waiting.frame;
  const std::string name = name_of(frame.id);
  write_image((frame.right ? folder_ / kLeft : folder_) / name, *frame.image);
  if (frame.right) write_image(folder_ / kRight / name, *frame.right);
  const double host = std::chrono::duration<double>(frame.received.time_since_epoch()).count();
  std::fprintf(table_.get(), "%.9f,%.6f,%lld,%s\n", waiting.time, host, static_cast<long long>(frame.id),
               name.c_str());
  if (std::fflush(table_.get()) != 0)
    throw FileError("The recording cannot be written to " + folder_.string() + " (" + std::strerror(errno) +
                    "): free some space.");
}

}  // namespace dic::live

#include "run/watched_folder.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <dic/error.hpp>
#include <stdexcept>
#include <utility>

#include "image/endings.hpp"
#include "image/frame_file.hpp"

namespace dic {

std::vector<std::string> WatchOptions::validate() const {
  std::vector<std::string> found;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    found.push_back(folder.string() + " is not a folder: name the one into which the images come.");
  if (until < 0) found.push_back("The number of frames must not be negative (0 = any number).");
  for (const double seconds : {idle, patience})
    if (!std::isfinite(seconds) || seconds < 0)
      found.push_back("Times must be numbers of seconds that are not negative.");
  return found;
}

}  // namespace dic

namespace dic::run {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Interval at which the folder is listed, in case the system does not report changes.
constexpr milliseconds kListEvery{200};
// A listing takes at most 1 / kListShare of the time.
constexpr int kListShare = 20;
// A file that the system did not report is considered whole if it has not changed for this time.
constexpr milliseconds kStable{500};
// Interval at which a file that cannot be read is tried again.
constexpr milliseconds kRetry{20};

std::chrono::duration<double> seconds(double number) { return std::chrono::duration<double>(number); }

/// Time at which a file with this stamp was written, s.
double written(const std::string& stamp) {
  const std::size_t space = stamp.find(' ');
  return space == std::string::npos ? 0 : std::strtod(stamp.c_str() + space, nullptr);
}

bool is_frame_name(const std::string& name) {
  return !name.starts_with('.') && image::has_image_ending(name);
}

}  // namespace

WatchedFolder::Notices::Notices(const fs::path& folder)
    : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  constexpr std::uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO;
  // If it fails (too many watches), the folder is listed instead.
  if (events_ >= 0) inotify_add_watch(events_, folder.c_str(), kEvents);
}

WatchedFolder::Notices::~Notices() {
  for (const int file : {events_, waker_})
    if (file >= 0) ::close(file);
}

template <typename Told>
void WatchedFolder::Notices::wait(milliseconds longest, const Told& told) const {
  std::array<pollfd, 2> files = {pollfd{events_, POLLIN, 0}, pollfd{waker_, POLLIN, 0}};
  ::poll(files.data(), files.size(), static_cast<int>(longest.count()));
  alignas(inotify_event) char buffer[1 << 16];
  for (ssize_t bytes = 0; (bytes = ::read(events_, buffer, sizeof buffer)) > 0;)
    for (const char* at = buffer; at < buffer + bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      if (event->len > 0) told(std::string(event->name), (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0);
      at += sizeof(inotify_event) + event->len;
    }
}

void WatchedFolder::Notices::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(waker_, &one, sizeof one);
}

WatchedFolder::WatchedFolder(const WatchOptions& options, const std::vector<std::string>& known,
                             std::int64_t frames, std::stop_token stop)
    : options_(options),
      most_(frames),
      notices_(options.folder),
      frames_(known),
      taken_(known.begin(), known.end()),
      watcher_([this](const std::stop_token& closing) { watch(closing); }),
      on_stop_(std::move(stop), [this] { end(); }) {
  for (const std::string& name : known)
    if (file_stamp(options.folder / name).empty())
      throw FileError((options.folder / name).string() +
                      " was measured, but is not there any more: put it back, or start again with --force.");
}

WatchedFolder::~WatchedFolder() {
  watcher_.request_stop();
  notices_.wake();
}

void WatchedFolder::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = is_stopped_ = true;
  changed_.notify_all();
}

void WatchedFolder::watch(const std::stop_token& stop) {
  milliseconds pause = kListEvery;
  Clock::time_point listed{};
  while (!stop.stop_requested()) {
    if (Clock::now() - listed >= pause) {
      const auto begin = Clock::now();
      look();
      listed = Clock::now();
      pause = std::max(kListEvery, kListShare * std::chrono::duration_cast<milliseconds>(listed - begin));
    }
    {
      const std::lock_guard lock(mutex_);
      take_frames();
      if (options_.idle > 0 && Clock::now() - last_change_ > seconds(options_.idle)) has_ended_ = true;
      if (most_ > 0 && std::ssize(frames_) >= most_) has_ended_ = true;
      changed_.notify_all();
      if (has_ended_) return;
    }
    notices_.wait(kListEvery, [this](const std::string& name, bool is_whole) { told(name, is_whole); });
  }
}

/// Looks at all files of the folder, including those that the system did not report. Reported ones are
/// looked at only when they are new.
void WatchedFolder::look() {
  std::error_code error;
  for (fs::directory_iterator entry(options_.folder, error), end; !error && entry != end;
       entry.increment(error))
    if (const std::string name = entry->path().filename().string(); is_frame_name(name)) look_at(name);
}

void WatchedFolder::look_at(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (taken_.contains(name)) return;
  const std::string stamp = file_stamp(options_.folder / name);
  auto [at, is_new] = candidates_.try_emplace(name);
  Candidate& candidate = at->second;
  const auto now = Clock::now();
  if (is_new || candidate.stamp != stamp) {
    candidate.stamp = stamp;
    candidate.changed = now;
    last_change_ = now;
  }
  if (is_new && is_old(candidate)) candidate.is_whole = true;
  const auto still =
      candidate.is_told
          ? Clock::duration(std::chrono::duration_cast<Clock::duration>(seconds(options_.patience)))
          : Clock::duration(kStable);
  if (now - candidate.changed >= still) candidate.is_whole = true;
}

/// True if the file was written before the folder was first listed.
bool WatchedFolder::is_old(const Candidate& candidate) const {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count() - written(candidate.stamp) > std::chrono::duration<double>(kStable).count();
}

void WatchedFolder::told(const std::string& name, bool is_whole) {
  if (!is_frame_name(name)) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  last_change_ = now;
  if (taken_.contains(name)) return;
  Candidate& candidate = candidates_[name];
  candidate.stamp = file_stamp(options_.folder / name);
  candidate.changed = now;
  candidate.is_told = true;
  candidate.is_whole = is_whole;
}

std::map<std::string, WatchedFolder::Candidate>::const_iterator WatchedFolder::next_frame() const {
  if (candidates_.empty()) return candidates_.end();
  if (options_.order == ArrivalOrder::name) {
    const auto first =
        std::ranges::min_element(candidates_, natural_less, [](const auto& c) { return c.first; });
    return first->second.is_whole ? first : candidates_.end();
  }
  const auto time = [](const auto& c) { return c.second.is_whole ? written(c.second.stamp) : HUGE_VAL; };
  const auto first = std::ranges::min_element(candidates_, {}, time);
  return first->second.is_whole ? first : candidates_.end();
}

void WatchedFolder::take_frames() {
  for (auto next = next_frame(); next != candidates_.end(); next = next_frame()) {
    if (most_ > 0 && std::ssize(frames_) >= most_) return;
    frames_.push_back(next->first);
    taken_.insert(next->first);
    candidates_.erase(next);
  }
}

fs::path WatchedFolder::path(std::int64_t i) const { return options_.folder / name(i); }

std::string WatchedFolder::name(std::int64_t i) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return i < std::ssize(frames_) || has_ended_; });
  if (i >= std::ssize(frames_) || (is_stopped_ && i > last_asked_))
    throw std::out_of_range("The folder has no such frame.");
  last_asked_ = std::max(last_asked_, i);
  return frames_[i];
}

std::string WatchedFolder::stamp(std::int64_t i) const { return file_stamp(path(i)); }

/// Reads a frame, and waits while the file still changes: its writer may have closed it before it was whole,
/// or the system does not report closing.
Image WatchedFolder::read(std::int64_t i) {
  const fs::path file = path(i);
  for (;;) {
    const std::string stamp = file_stamp(file);
    try {
      if (const std::int64_t frames = image::frames_in(file); frames > 1)
        throw FileError("'" + file.string() + "' holds " + std::to_string(frames) +
                        " frames, and a watched folder takes one of each file; measure it by itself.");
      return read_image(file);
    } catch (const FileError&) {
      if (!changes(file, stamp)) throw;
    }
  }
}

/// Waits whether the file changes, at most WatchOptions::patience.
bool WatchedFolder::changes(const fs::path& file, const std::string& stamp) const {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  while (Clock::now() - begin < seconds(options_.patience)) {
    if (file_stamp(file) != stamp) return true;
    if (changed_.wait_for(lock, kRetry, [this] { return is_stopped_; })) return false;
  }
  return false;
}

}  // namespace dic::run

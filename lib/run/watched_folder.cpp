#include "run/watched_folder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
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
  if (folder.empty())
    found.push_back("No folder was given: name the one into which the images come.");
  else if (!std::filesystem::is_directory(folder, ignored))
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

/// Programs that have a file open for writing.
enum class Writers : std::uint8_t { none, some, unknown };

/// The system grants a lease for reading only where nobody can write. Unknown on network file systems, and
/// for files of other users.
Writers writers_of(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return Writers::unknown;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return Writers::unknown;
  Writers found = Writers::unknown;
  // Who opens the file for writing while the lease is held causes a signal: by default SIGIO, which ends the
  // process, while SIGURG is ignored.
  if (::fcntl(descriptor, F_SETSIG, SIGURG) == 0) {
    if (::fcntl(descriptor, F_SETLEASE, F_RDLCK) == 0) {
      ::fcntl(descriptor, F_SETLEASE, F_UNLCK);
      found = Writers::none;
    } else if (errno == EAGAIN) {
      found = Writers::some;
    }
  }
  ::close(descriptor);
  return found;
}

/// False for links to files that are closed elsewhere: the system reports only that the link was made.
bool is_reported_when_closed(const fs::path& file) {
  struct stat found {};
  return ::lstat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 1;
}

}  // namespace

WatchedFolder::Notices::Notices()
    : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void WatchedFolder::Notices::watch(const fs::path& folder) {
  constexpr std::uint32_t kEvents =
      IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR;
  if (events_ < 0) return;
  // If it fails (too many watches), the folder is listed instead. The same folder has the same number.
  const int watched = inotify_add_watch(events_, folder.c_str(), kEvents);
  if (watched_ >= 0 && watched_ != watched) inotify_rm_watch(events_, watched_);
  watched_ = watched;
}

WatchedFolder::Notices::~Notices() {
  for (const int file : {events_, waker_})
    if (file >= 0) ::close(file);
}

template <typename Told>
void WatchedFolder::Notices::wait(milliseconds longest, const Told& told) const {
  constexpr std::array<std::pair<std::uint32_t, Event>, 6> kEvents = {
      {{IN_Q_OVERFLOW, Event::lost},
       {IN_CLOSE_WRITE, Event::closed},
       {IN_MOVED_FROM, Event::moved_away},
       {IN_MOVED_TO, Event::moved_here},
       {IN_DELETE, Event::gone},
       {IN_CREATE | IN_MODIFY, Event::written}}};
  std::array<pollfd, 2> files = {pollfd{events_, POLLIN, 0}, pollfd{waker_, POLLIN, 0}};
  ::poll(files.data(), files.size(), static_cast<int>(longest.count()));
  alignas(inotify_event) char buffer[1 << 16];
  for (ssize_t bytes = 0; (bytes = ::read(events_, buffer, sizeof buffer)) > 0;)
    for (const char* at = buffer; at < buffer + bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      const bool is_lost = (event->mask & IN_Q_OVERFLOW) != 0;
      if (!is_lost && (event->wd != watched_ || event->len == 0 || (event->mask & IN_ISDIR) != 0)) continue;
      for (const auto& [mask, kind] : kEvents)
        if ((event->mask & mask) != 0) {
          told(Notice{kind, is_lost ? "" : event->name, event->cookie});
          break;
        }
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
      frames_(frames_of(known)),
      taken_(known.begin(), known.end()),
      watcher_([this](const std::stop_token& closing) { watch(closing); }),
      on_stop_(std::move(stop), [this] { end(); }) {
  for (const std::string& name : known)
    if (file_stamp(options.folder / name).empty())
      throw FileError((options.folder / name).string() +
                      " was measured, but is not there any more: put it back, or start again with --force.");
}

std::vector<WatchedFolder::ArrivedFrame> WatchedFolder::frames_of(const std::vector<std::string>& names) {
  std::vector<ArrivedFrame> frames;
  for (const std::string& name : names)
    frames.push_back({.name = name, .is_closed = false, .is_overdue = false});
  return frames;
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
      notices_.watch(options_.folder);
      look();
      listed = Clock::now();
      pause = std::max(kListEvery, kListShare * std::chrono::duration_cast<milliseconds>(listed - begin));
    }
    if (has_reached_the_end()) return;
    notices_.wait(kListEvery, [&](const Notice& notice) {
      if (notice.event == Event::lost) listed = {};
      told(notice);
    });
  }
}

/// Takes what has arrived. True if no further frames will be taken.
bool WatchedFolder::has_reached_the_end() {
  std::unique_lock lock(mutex_);
  take_frames();
  if (!candidates_.empty() || last_asked_ + 1 < std::ssize(frames_)) last_change_ = Clock::now();
  if (is_idle()) {  // a last look, since listings may be rare
    lock.unlock();
    look();
    lock.lock();
  }
  if (candidates_.empty() && is_idle()) has_ended_ = true;
  if (most_ > 0 && std::ssize(frames_) >= most_) has_ended_ = true;
  changed_.notify_all();
  return has_ended_;
}

/// True if nothing has come for the given time since all frames are being read.
bool WatchedFolder::is_idle() const {
  return options_.idle > 0 && Clock::now() - last_change_ > seconds(options_.idle);
}

/// Looks at all files of the folder, including those that the system did not report, and forgets candidates
/// that are gone. Reported ones are looked at only when they are new.
void WatchedFolder::look() {
  std::error_code error, ignored;
  for (fs::directory_iterator entry(options_.folder, error), end; !error && entry != end;
       entry.increment(error))
    if (const std::string name = entry->path().filename().string();
        is_frame_name(name) && !entry->is_directory(ignored))
      look_at(name);
  const std::lock_guard lock(mutex_);
  std::erase_if(candidates_, [&](const auto& candidate) {
    return fs::symlink_status(options_.folder / candidate.first, ignored).type() == fs::file_type::not_found;
  });
}

void WatchedFolder::look_at(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (taken_.contains(name)) return;
  const fs::path file = options_.folder / name;
  const std::string stamp = file_stamp(file);
  auto [at, is_new] = candidates_.try_emplace(name);
  Candidate& candidate = at->second;
  const auto now = Clock::now();
  if (is_new || candidate.stamp != stamp) {
    candidate.stamp = stamp;
    candidate.changed = now;
    last_change_ = now;
  }
  if (candidate.is_whole || now - candidate.changed < std::min<Clock::duration>(kStable, patience())) return;
  const Writers writers = writers_of(file);
  candidate.is_whole = now - candidate.changed >= patience() || writers == Writers::none ||
                       (writers == Writers::unknown && !candidate.is_told);
}

void WatchedFolder::told(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  const std::string& name = notice.name;
  switch (notice.event) {
    case Event::lost:
      unclosed_.clear();
      for (auto& [ignored, candidate] : candidates_) candidate.is_told = false;
      return;
    case Event::written:
      unclosed_.insert(name);
      return add_told(name, false, false);
    case Event::closed:
      unclosed_.erase(name);
      return add_told(name, true, true);
    case Event::moved_away:
      moved_away_ = notice;
      was_unclosed_ = unclosed_.contains(name);
      [[fallthrough]];
    case Event::gone:
      unclosed_.erase(name);
      candidates_.erase(name);
      return;
    case Event::moved_here:
      return moved_here(notice, notice.move == moved_away_.move && was_unclosed_);
  }
}

/// A file that is moved from elsewhere is whole, and one that is renamed is what it was before.
void WatchedFolder::moved_here(const Notice& notice, bool was_unclosed) {
  const bool is_renamed = notice.move == moved_away_.move;
  if (is_renamed && taken_.contains(moved_away_.name)) return rename_frame(moved_away_.name, notice.name);
  if (was_unclosed) unclosed_.insert(notice.name);
  add_told(notice.name, false, !was_unclosed);
}

void WatchedFolder::rename_frame(const std::string& from, const std::string& to) {
  if (!is_frame_name(to)) return;
  const auto frame = std::ranges::find(frames_.rbegin(), frames_.rend(), from, &ArrivedFrame::name);
  if (frame != frames_.rend()) frame->name = to;
  taken_.erase(from);
  taken_.insert(to);
  candidates_.erase(to);
  changed_.notify_all();
}

void WatchedFolder::add_told(const std::string& name, bool is_closed, bool is_whole) {
  if (!is_frame_name(name)) return;
  const auto now = Clock::now();
  last_change_ = now;
  const fs::path file = options_.folder / name;
  std::error_code ignored;
  const bool is_gone = fs::symlink_status(file, ignored).type() == fs::file_type::not_found;
  if (is_gone || taken_.contains(name)) return;  // closing is reported of deleted files, too
  Candidate& candidate = candidates_[name];
  candidate.stamp = file_stamp(file);
  candidate.changed = now;
  candidate.is_told = is_reported_when_closed(file);
  candidate.is_closed = is_closed;
  candidate.is_whole = is_whole;
}

/// Takes candidates in the chosen order, up to the first that has to be waited for.
void WatchedFolder::take_frames() {
  const auto is_enough = [this] { return most_ > 0 && std::ssize(frames_) >= most_; };
  if (options_.order == ArrivalOrder::name) {
    while (!candidates_.empty() && candidates_.begin()->second.is_whole && !is_enough())
      take(candidates_.begin());
    return;
  }
  std::vector<std::pair<double, std::string>> whole;
  for (const auto& [name, candidate] : candidates_)
    if (candidate.is_whole) whole.emplace_back(written(candidate.stamp), name);
  std::ranges::stable_sort(whole, {}, &std::pair<double, std::string>::first);
  for (const auto& [time, name] : whole)
    if (!is_enough()) take(candidates_.find(name));
}

void WatchedFolder::take(std::map<std::string, Candidate, NaturalOrder>::const_iterator candidate) {
  const bool is_overdue = Clock::now() - candidate->second.changed >= patience();
  frames_.push_back({candidate->first, candidate->second.is_closed, is_overdue});
  taken_.insert(candidate->first);
  candidates_.erase(candidate);
}

fs::path WatchedFolder::path(std::int64_t i) const { return options_.folder / name(i); }

std::string WatchedFolder::name(std::int64_t i) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return i < std::ssize(frames_) || has_ended_; });
  if (i >= std::ssize(frames_) || (is_stopped_ && i > last_asked_))
    throw std::out_of_range("The folder has no such frame.");
  last_asked_ = std::max(last_asked_, i);
  return frames_[i].name;
}

std::string WatchedFolder::stamp(std::int64_t i) const { return file_stamp(path(i)); }

/// Reads a frame, and waits while the file still changes: its writer may have closed it before it was whole,
/// or the system does not report closing. The file may be renamed meanwhile.
Image WatchedFolder::read(std::int64_t i) {
  const ArrivedFrame arrived = [&] {
    const std::lock_guard lock(mutex_);
    return frames_.at(i);
  }();
  bool may_be_open = !arrived.is_closed;
  for (;;) {
    const fs::path file = path(i);
    const std::string stamp = file_stamp(file);
    if (may_be_open && writers_of(file) == Writers::some) {
      if (arrived.is_overdue || !changes(i, file, stamp, true))
        throw FileError("'" + file.string() +
                        "' is still open in the program that writes it, but does not change any more: it "
                        "was not read.");
      continue;
    }
    try {
      if (const std::int64_t frames = image::frames_in(file); frames > 1)
        throw FileError("'" + file.string() + "' holds " + std::to_string(frames) +
                        " frames, and a watched folder takes one of each file; measure it by itself.");
      Image image = read_image(file);
      if (file_stamp(file) == stamp) return image;
    } catch (const FileError&) {
      if (!changes(i, file, stamp, false)) throw;
    }
    may_be_open = true;
  }
}

/// Waits whether the file of frame i changes, is closed or gets another name, at most WatchOptions::patience.
bool WatchedFolder::changes(std::int64_t i, const fs::path& file, const std::string& stamp,
                            bool was_open) const {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  while (Clock::now() - begin < patience()) {
    if (options_.folder / frames_[i].name != file || file_stamp(file) != stamp) return true;
    if (was_open && writers_of(file) != Writers::some) return true;
    if (changed_.wait_for(lock, kRetry, [this] { return is_stopped_; })) return false;
  }
  return false;
}

WatchedFolder::Clock::duration WatchedFolder::patience() const {
  return std::chrono::duration_cast<Clock::duration>(seconds(std::min(options_.patience, 1e8)));
}

}  // namespace dic::run

#pragma once

#include <chrono>
#include <condition_variable>
#include <dic/image_io.hpp>
#include <dic/watch.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dic::run {

/// Images of a folder as frames, in the order in which they arrive. Calls wait for such a frame; they throw
/// std::out_of_range if there will be none.
class WatchedFolder final : public FrameSource {
 public:
  /// known: names of existing files, which come first. frames: largest number of frames, 0 = any number.
  /// Throws FileError.
  WatchedFolder(const WatchOptions& options, const std::vector<std::string>& known, std::int64_t frames,
                std::stop_token stop);
  ~WatchedFolder() override;

  std::optional<std::int64_t> count() const override { return {}; }
  std::filesystem::path file(std::int64_t i) const override { return path(i); }
  std::string name(std::int64_t i) const override;
  Image read(std::int64_t i) override;
  std::string stamp(std::int64_t i) const override;
  bool reads_in_parallel() const override { return true; }

 private:
  using Clock = std::chrono::steady_clock;

  /// A file that is not a frame yet.
  struct Candidate {
    std::string stamp;
    Clock::time_point changed;  ///< time at which its stamp was seen to change
    bool is_told = false;       ///< the system reports when it is written and closed
    bool is_closed = false;     ///< the system has reported that it was closed
    bool is_whole = false;
  };

  struct ArrivedFrame {
    std::string name;
    bool is_closed = false;   ///< as of its candidate
    bool is_overdue = false;  ///< it was not closed for WatchOptions::patience
  };

  /// Events of a file. lost: notifications of any files are missing.
  enum class Event : std::uint8_t { written, closed, gone, moved_away, moved_here, lost };
  struct Notice {
    Event event = Event::lost;
    std::string name;
    std::uint32_t move = 0;  ///< the same for both names of a file that was renamed
  };

  /// Notifications of the system about a folder.
  class Notices {
   public:
    Notices();
    ~Notices();
    Notices(const Notices&) = delete;
    Notices& operator=(const Notices&) = delete;
    /// Watches the folder that has this name now; it may be another one than before.
    void watch(const std::filesystem::path& folder);
    /// Waits at most the given time for the first notification, and hands over all that have come.
    template <typename Told>
    void wait(std::chrono::milliseconds longest, const Told& told) const;
    /// Ends a wait of another thread.
    void wake() const;

   private:
    int events_ = -1, waker_ = -1, watched_ = -1;
  };

  struct NaturalOrder {
    bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
  };

  void watch(const std::stop_token& stop);
  bool has_reached_the_end();
  bool is_idle() const;
  void look();
  void look_at(const std::string& name);
  void told(const Notice& notice);
  void moved_here(const Notice& notice, bool was_unclosed);
  void rename_frame(const std::string& from, const std::string& to);
  void add_told(const std::string& name, bool is_closed, bool is_whole);
  void take_frames();
  void take(std::map<std::string, Candidate, NaturalOrder>::const_iterator candidate);
  std::filesystem::path path(std::int64_t i) const;
  Clock::duration patience() const;
  static std::vector<ArrivedFrame> frames_of(const std::vector<std::string>& names);
  bool changes(std::int64_t i, const std::filesystem::path& file, const std::string& stamp,
               bool was_open) const;
  void end();

  WatchOptions options_;
  std::int64_t most_;
  Notices notices_;

  mutable std::mutex mutex_;  ///< guards all members below
  mutable std::condition_variable changed_;
  std::vector<ArrivedFrame> frames_;
  std::set<std::string> taken_;  ///< names of the frames, to look up
  std::map<std::string, Candidate, NaturalOrder> candidates_;
  std::set<std::string> unclosed_;  ///< names of all files that were reported as written and not as closed
  Notice moved_away_;               ///< the last of these, and whether its file was not closed then
  bool was_unclosed_ = false;
  Clock::time_point last_change_ = Clock::now();
  bool has_ended_ = false;                ///< no further frames will arrive
  bool is_stopped_ = false;               ///< no further existing file is begun
  mutable std::int64_t last_asked_ = -1;  ///< index of the frame that was last asked for

  std::jthread watcher_;
  std::stop_callback<std::function<void()>>
      on_stop_;  ///< declared last, so that no callback runs while members are destroyed
};

}  // namespace dic::run

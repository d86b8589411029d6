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
    bool is_whole = false;
  };

  /// Notifications of the system about a folder.
  class Notices {
   public:
    explicit Notices(const std::filesystem::path& folder);
    ~Notices();
    Notices(const Notices&) = delete;
    Notices& operator=(const Notices&) = delete;
    /// Waits at most the given time for the first notification, and calls told(name, is_whole) for each file
    /// that the system has reported.
    template <typename Told>
    void wait(std::chrono::milliseconds longest, const Told& told) const;
    /// Ends a wait of another thread.
    void wake() const;

   private:
    int events_ = -1, waker_ = -1;
  };

  void watch(const std::stop_token& stop);
  void look();
  void look_at(const std::string& name);
  void told(const std::string& name, bool is_whole);
  void take_frames();
  std::map<std::string, Candidate>::const_iterator next_frame() const;
  bool is_old(const Candidate& candidate) const;
  std::filesystem::path path(std::int64_t i) const;
  bool changes(const std::filesystem::path& file, const std::string& stamp) const;
  void end();

  WatchOptions options_;
  std::int64_t most_;
  Notices notices_;

  mutable std::mutex mutex_;  ///< guards all members below
  mutable std::condition_variable changed_;
  std::vector<std::string> frames_;  ///< names of the frames
  std::set<std::string> taken_;      ///< names of the frames, to look up
  std::map<std::string, Candidate> candidates_;
  Clock::time_point last_change_ = Clock::now();
  bool has_ended_ = false;                ///< no further frames will arrive
  bool is_stopped_ = false;               ///< no further existing file is begun
  mutable std::int64_t last_asked_ = -1;  ///< index of the frame that was last asked for

  std::jthread watcher_;
  std::stop_callback<std::function<void()>>
      on_stop_;  ///< declared last, so that no callback runs while members are destroyed
};

}  // namespace dic::run

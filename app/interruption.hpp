#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace dic::app {

/// Turns the first SIGINT, SIGTERM or SIGHUP into a stop request, for as long as the object lives; a second
/// one ends the program at once. SIGPIPE, unless it is ignored, is a stop request too, so that temporary
/// files are removed. Create it before other threads are started: they inherit the blocked signals.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

  /// While it lives, a signal ends the program at once: for work that cannot be stopped midway and writes
  /// nothing, such as reading an image.
  class AtOnce {
   public:
    explicit AtOnce(Interruption& interruption);
    ~AtOnce() { interruption_.ends_at_once_ = false; }
    AtOnce(const AtOnce&) = delete;
    AtOnce& operator=(const AtOnce&) = delete;

   private:
    Interruption& interruption_;
  };

  /// True if the reader of what the program prints has ended, as in `dic validate | head`: the stop was
  /// requested for that reason.
  static bool output_is_gone();

 private:
  void watch();

  sigset_t signals_;
  std::stop_source stop_;
  std::stop_source watched_;  ///< requested when the watcher has to end
  std::atomic<bool> ends_at_once_ = false;
  std::thread watcher_;
};

}  // namespace dic::app

#include "interruption.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "commands.hpp"

namespace dic::app {

namespace {

// A program started in the background by a script, or with nohup, has been told to ignore the signal.
bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

std::atomic<bool> is_gone = false;

/// The thread that printed gets SIGPIPE; the watcher waits for signals to the process.
void stop_printing(int) {
  if (!is_gone.exchange(true)) kill(getpid(), SIGTERM);
}

/// Replaces one handler of SIGPIPE by another, and leaves any third one in place.
void replace_pipe_handler(void (*from)(int), void (*to)(int)) {
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  if (action.sa_handler == from) std::signal(SIGPIPE, to);
}

}  // namespace

bool Interruption::output_is_gone() { return is_gone; }

Interruption::Interruption() {
  replace_pipe_handler(SIG_DFL, stop_printing);
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&signals_, signal);
  sigaddset(&signals_, SIGUSR1);  // wakes the watcher when it has to end
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Interruption::~Interruption() {
  watched_.request_stop();
  pthread_kill(watcher_.native_handle(), SIGUSR1);
  watcher_.join();
  replace_pipe_handler(stop_printing, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

Interruption::AtOnce::AtOnce(Interruption& interruption) : interruption_(interruption) {
  std::cout.flush();
  interruption_.ends_at_once_ = true;
  if (interruption_.stop_.stop_requested()) std::_Exit(interrupted);
}

void Interruption::watch() {
  for (;;) {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (watched_.stop_requested()) return;
    if (signal == SIGUSR1) continue;
    if (ends_at_once_ || stop_.stop_requested()) std::_Exit(is_gone ? output_gone : interrupted);
    stop_.request_stop();
  }
}

}  // namespace dic::app

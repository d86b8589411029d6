#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <stop_token>

namespace dic::python {

namespace nb = nanobind;

/// Runs work(stop token) without the GIL, on a thread of its own, and returns what it returns. Ctrl-C sets
/// the token, waits for the end and raises KeyboardInterrupt.
template <typename Work>
auto interruptible(Work&& work) {
  std::stop_source stop;
  auto result = std::async(std::launch::async, [&] { return work(stop.get_token()); });
  for (bool done = false; !done;) {
    {
      const nb::gil_scoped_release others_run;
      done = result.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
    }
    if (done || PyErr_CheckSignals() == 0) continue;
    const nb::python_error interruption;
    stop.request_stop();
    {
      const nb::gil_scoped_release others_run;
      result.wait();
    }
    throw interruption;  // NOLINT: its copy has the same exception
  }
  return result.get();
}

}  // namespace dic::python

#pragma once

#include <chrono>
#include <dic/kernels/device.hpp>
#include <dic/track.hpp>
#include <optional>

namespace dic::track::cuda {

/// The time at which a stream reached a place in its work, by the clock of the host. The first record()
/// synchronizes the clocks of host and device, and waits for the stream.
class GpuTimestamp {
 public:
  void record(const kernels::Stream& stream) {
    if (!origin_) {
      since_origin_.start(stream);
      stream.synchronize("a timestamp");
      origin_ = std::chrono::steady_clock::now();
    }
    since_origin_.stop(stream);
  }
  /// Returns the time. Call it after the stream has passed the place.
  StageSpan::Time time() const {
    return *origin_ + std::chrono::duration_cast<StageSpan::Time::duration>(
                          std::chrono::duration<double>(since_origin_.seconds()));
  }

 private:
  std::optional<StageSpan::Time> origin_;
  kernels::Stopwatch since_origin_;
};

}  // namespace dic::track::cuda

#pragma once

#include <chrono>
#include <dic/kernels/device.hpp>
#include <dic/track.hpp>
#include <optional>

namespace dic::track::cuda {

/// A moment in the work of a stream, by the host's clock. The clocks of host and device are brought together
/// when it is first marked, which waits for the stream.
class Moment {
 public:
  void mark(const kernels::Stream& stream) {
    if (!origin_) {
      since_origin_.start(stream);
      stream.synchronize("a mark in time");
      origin_ = std::chrono::steady_clock::now();
    }
    since_origin_.stop(stream);
  }
  /// The stream has come so far.
  StageSpan::Time time() const {
    return *origin_ + std::chrono::duration_cast<StageSpan::Time::duration>(
                          std::chrono::duration<double>(since_origin_.seconds()));
  }

 private:
  std::optional<StageSpan::Time> origin_;
  kernels::Stopwatch since_origin_;
};

}  // namespace dic::track::cuda

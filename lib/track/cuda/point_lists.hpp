#pragma once

#include <array>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>
#include <string>

namespace dic::track::cuda {

/// Lists of points that kernels fill, and counts whose lists lie elsewhere. The host is told all lengths at
/// once: that is what it waits for while a frame is measured.
class PointLists {
 public:
  enum Name {
    without,
    whole,
    cut,
    again_whole,
    again_cut,
    once_more_whole,
    once_more_cut,
    lost,
    tasks,
    first_front,
    untried,
    dropped,
    names
  };

  /// Room for `points` in every list. Empties all.
  void reserve(std::int64_t points, const kernels::Stream& stream) {
    points_ = points;
    memory_.reserve<std::int32_t>(names * points);
    kernels::fill(counts_.reserve<std::int32_t>(names), 0, names * sizeof(std::int32_t), stream.handle());
    on_host_.reserve<std::int32_t>(kTellings * names);
  }

  kernels::PointList operator[](Name name) const {
    return {static_cast<std::int32_t*>(memory_.data()) + name * points_, count(name)};
  }
  std::int32_t* count(Name name) const { return static_cast<std::int32_t*>(counts_.data()) + name; }

  /// Queues telling the host the lengths. Returns which telling it is; the last few are kept.
  int tell(const kernels::Stream& stream) {
    last_ = (last_ + 1) % kTellings;
    kernels::launch_store_counts(count(Name{}), names, lengths(last_), stream.handle());
    told_[last_].record(stream);
    return last_;
  }
  /// Waits for lengths that were told; `what` names the work before them in the message of an error.
  void wait(int telling, const std::string& what) {
    told_[telling].synchronize(what);
    known_ = telling;
  }
  void read(const kernels::Stream& stream, const std::string& what) { wait(tell(stream), what); }
  /// As waited for last.
  std::int64_t size(Name name) const { return lengths(known_)[name]; }

 private:
  static constexpr int kTellings = 4;

  std::int32_t* lengths(int telling) const {
    return static_cast<std::int32_t*>(on_host_.data()) + telling * names;
  }

  std::int64_t points_ = 0;
  kernels::DeviceBuffer memory_, counts_;
  kernels::PinnedBuffer on_host_;
  std::array<kernels::Event, kTellings> told_;
  int last_ = 0, known_ = 0;
};

}  // namespace dic::track::cuda

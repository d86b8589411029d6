#pragma once

#include <array>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>
#include <string>

namespace dic::track::cuda {

/// Lists of points that kernels fill, and counts whose lists lie elsewhere. The host reads all lengths at
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
    untried,
    dropped,
    names
  };

  /// Room for `points` in every list. Empties all.
  void reserve(std::int64_t points, const kernels::Stream& stream) {
    points_ = points;
    memory_.reserve<std::int32_t>(names * points);
    kernels::fill(counts_.reserve<std::int32_t>(names), 0, names * sizeof(std::int32_t), stream.handle());
    on_host_.reserve<std::int32_t>(names);
  }

  kernels::PointList operator[](Name name) const {
    return {static_cast<std::int32_t*>(memory_.data()) + name * points_, count(name)};
  }
  std::int32_t* count(Name name) const { return static_cast<std::int32_t*>(counts_.data()) + name; }

  /// Queues telling the host the lengths.
  void tell(const kernels::Stream& stream) {
    kernels::launch_store_counts(count(Name{}), names, static_cast<std::int32_t*>(on_host_.data()),
                                 stream.handle());
    told_.record(stream);
  }
  /// Waits for the lengths that were told last; `what` names the work before them in the message of an error.
  void wait(const std::string& what) const { told_.synchronize(what); }
  void read(const kernels::Stream& stream, const std::string& what) {
    tell(stream);
    wait(what);
  }
  /// As read last.
  std::int64_t size(Name name) const { return static_cast<const std::int32_t*>(on_host_.data())[name]; }

 private:
  std::int64_t points_ = 0;
  kernels::DeviceBuffer memory_, counts_;
  kernels::PinnedBuffer on_host_;
  kernels::Event told_;
};

}  // namespace dic::track::cuda

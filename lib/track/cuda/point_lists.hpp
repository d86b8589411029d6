#pragma once

#include <array>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/points.hpp>
#include <string>

namespace dic::track::cuda {

/// Lists of points that kernels fill on one GPU, and counts of lists that are stored elsewhere. The host
/// reads all lengths at once; it waits for nothing else while a frame is measured.
class PointLists {
 public:
  enum Name {
    unpredicted,    ///< points without a prediction
    whole,          ///< points whose subset is whole
    clipped,        ///< points whose subset is clipped by the border of the image or by the ROI
    whole_again,    ///< whole subsets to be searched again, as the peak lies on the border of the window
    clipped_again,  ///< clipped subsets to be searched again
    whole_spare,    ///< list that is filled while whole_again is read
    clipped_spare,  ///< list that is filled while clipped_again is read
    lost,           ///< points that were not found
    tasks,          ///< count only: refinements
    first_front,    ///< count only: points of the first wave
    untried,        ///< count only: starts on lower steps of the ladder
    dropped,        ///< points of islands that were given up
    excused,        ///< count only: points that the last frame excuses (track::is_excused)
    excused_unpredicted,  ///< count only: those among them without a prediction
    left_to_neighbours,   ///< count only: points that only their neighbours may find
    excused_lost,         ///< count only: those among them that were not found
    names
  };

  /// Allocates room for `points` in every list, and empties all lists.
  void reserve(std::int64_t points, const kernels::Stream& stream) {
    points_ = points;
    memory_.reserve<std::int32_t>(names * points);
    kernels::fill(counts_.reserve<std::int32_t>(names), 0, names * sizeof(std::int32_t), stream.handle());
    on_host_.reserve<std::int32_t>(kReadbacks * names);
  }

  kernels::PointList operator[](Name name) const {
    return {static_cast<std::int32_t*>(memory_.data()) + name * points_, count(name)};
  }
  std::int32_t* count(Name name) const { return static_cast<std::int32_t*>(counts_.data()) + name; }

  /// Queues an asynchronous readback of all lengths. Returns its number for `wait`; only the last few
  /// readbacks are kept.
  int start_readback(const kernels::Stream& stream) {
    last_ = (last_ + 1) % kReadbacks;
    kernels::launch_store_counts(count(Name{}), names, lengths(last_), stream.handle());
    done_[last_].record(stream);
    return last_;
  }
  /// Waits for a readback; `what` names the work before it in the message of an error.
  void wait(int readback, const std::string& what) {
    done_[readback].synchronize(what);
    known_ = readback;
  }
  void read(const kernels::Stream& stream, const std::string& what) { wait(start_readback(stream), what); }
  /// Length of a list, by the readback that was waited for last.
  std::int64_t size(Name name) const { return lengths(known_)[name]; }

 private:
  static constexpr int kReadbacks = 4;

  std::int32_t* lengths(int readback) const {
    return static_cast<std::int32_t*>(on_host_.data()) + readback * names;
  }

  std::int64_t points_ = 0;
  kernels::DeviceBuffer memory_, counts_;
  kernels::PinnedBuffer on_host_;
  std::array<kernels::Event, kReadbacks> done_;
  int last_ = 0, known_ = 0;
};

}  // namespace dic::track::cuda

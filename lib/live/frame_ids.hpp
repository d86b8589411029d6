#pragma once

#include <cstdint>
#include <optional>

namespace dic::live {

/// Counts frame ids on where they wrap: GigE Vision cameras number frames from 1 to 65535 and begin again at
/// 1, or at 0 if they use that, too.
class FrameIds {
 public:
  /// Returns a number that grows by as much as the frames that the camera numbered meanwhile.
  std::int64_t unwrap(std::uint64_t id) {
    if (id == 0) has_zero_ = true;
    if (last_)
      number_ += steps(*last_, id);
    else
      number_ = static_cast<std::int64_t>(id);
    last_ = id;
    return number_;
  }

 private:
  static constexpr std::uint64_t kLargest = 65535;

  std::int64_t steps(std::uint64_t from, std::uint64_t to) const {
    if (to > from) return static_cast<std::int64_t>(to - from);
    const bool has_wrapped = from <= kLargest && from - to > kLargest / 2;
    if (!has_wrapped) return 1;  // the camera counts from the beginning again
    return static_cast<std::int64_t>(to + kLargest - from) + (has_zero_ ? 1 : 0);
  }

  std::optional<std::uint64_t> last_;
  std::int64_t number_ = 0;
  bool has_zero_ = false;
};

}  // namespace dic::live

#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/shared/host_device.hpp>

namespace dic::kernels {

/// Tasks that a block takes at once, one after the other.
struct Turn {
  std::int64_t first;
  int tasks;  ///< none are left: 0
};

/// How tasks come to blocks of one warp, of which all run at once. A scheduler serves each of its four warps
/// before the next one: with equal shares the first are done when a fifth of the time is left. So a third of
/// the tasks is dealt, in rounds of all blocks, and blocks take the others as they go: in turns of several,
/// the last ones singly, since to find out about tasks takes a block as long as a seventh of one.
struct Turns {
  static constexpr int tasks_of_turn = 4;
  std::int64_t tasks = 0, dealt = 0;
  int rounds = 0;          ///< in which tasks are dealt
  std::int64_t whole = 0;  ///< turns of several tasks

  Turns(std::int64_t all, std::int64_t blocks)
      : tasks(all), rounds(static_cast<int>(std::max<std::int64_t>(all / blocks * 7 / 20, 1))) {
    dealt = std::min(rounds * blocks, tasks);
    const std::int64_t singly = 2 * blocks;
    whole = std::max<std::int64_t>(tasks - dealt - singly, 0) / tasks_of_turn;
  }
  DIC_HOST_DEVICE bool deal_all() const { return dealt == tasks; }
  /// Those that are not dealt, from 0.
  DIC_HOST_DEVICE Turn turn(std::int64_t number) const {
    const bool is_whole = number < whole;
    const std::int64_t before = is_whole ? number : whole;
    const std::int64_t first = dealt + before * tasks_of_turn + (number - before);
    return {first, first >= tasks ? 0 : is_whole ? tasks_of_turn : 1};
  }
};

}  // namespace dic::kernels

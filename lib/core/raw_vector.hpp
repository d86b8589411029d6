#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace dic::core {

/// An allocator that leaves new elements uninitialized.
template <typename T>
struct RawAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T>);
  template <typename U>
  struct rebind {
    using other = RawAllocator<U>;
  };
  void construct(T*) noexcept {}
  template <typename... Arguments>
  void construct(T* at, Arguments&&... arguments) {
    std::construct_at(at, std::forward<Arguments>(arguments)...);
  }
};

/// A vector whose resize() leaves new elements uninitialized: assign them before reading them. If several
/// threads assign them, these threads also share the slower part: the system clears memory on first use.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace dic::core

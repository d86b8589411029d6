#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace dic {

/// Leaves new elements without a value.
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

/// A vector that is resized without a value for new elements: they have to be assigned before they are read.
/// Where several threads do that, they share what takes longer, the system's clearing of memory that is used
/// for the first time.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace dic

#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace dic {

/// An array with a value for every node, row-major. It owns its memory, and a copy is deep. Unlike a
/// std::vector it can take over existing memory, such as the buffer into which a GPU copied its results.
template <typename T>
class NodeValues {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  NodeValues() = default;
  explicit NodeValues(std::size_t count, const T& value = T())
      : memory_(std::make_shared<T[]>(count, value)), count_(count) {}
  /// Takes over memory of `count` values.
  NodeValues(std::shared_ptr<T[]> memory, std::size_t count) : memory_(std::move(memory)), count_(count) {}
  explicit NodeValues(std::span<const T> values) : memory_(new T[values.size()]), count_(values.size()) {
    std::ranges::copy(values, begin());
  }
  NodeValues(const NodeValues& other) : NodeValues(std::span(other.data(), other.count_)) {}
  NodeValues(NodeValues&& other) noexcept
      : memory_(std::move(other.memory_)), count_(std::exchange(other.count_, 0)) {}
  NodeValues& operator=(NodeValues other) noexcept {
    memory_.swap(other.memory_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~NodeValues() = default;

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  T& operator[](std::size_t node) { return memory_[node]; }
  const T& operator[](std::size_t node) const { return memory_[node]; }
  iterator begin() { return data(); }
  iterator end() { return data() + count_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + count_; }

  friend bool operator==(const NodeValues& a, const NodeValues& b) { return std::ranges::equal(a, b); }

 private:
  std::shared_ptr<T[]> memory_;
  std::size_t count_ = 0;
};

}  // namespace dic

#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "interruptible.hpp"

namespace dic::python {

/// An object of the library that takes one call at a time: calls from several Python threads wait for each
/// other.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::unique_ptr<T> object) : object_(std::move(object)) {}

  /// Runs work(object, stop token) as `interruptible` does.
  template <typename Work>
  auto call(Work&& work) {
    return interruptible([&](const std::stop_token& stop) {
      const std::lock_guard lock(mutex_);
      return work(*object_, stop);
    });
  }

  /// Returns what a short call on the object returns.
  template <typename Work>
  auto ask(Work&& work) {
    const nb::gil_scoped_release others_run;
    const std::lock_guard lock(mutex_);
    return work(*object_);
  }

  /// For what never changes.
  const T& object() const { return *object_; }

 private:
  std::unique_ptr<T> object_;
  std::mutex mutex_;
};

/// A property that a member function of T returns.
template <typename T, auto member>
auto property_of() {
  return [](Guarded<T>& self) {
    return self.ask([](T& object) { return std::decay_t<decltype((object.*member)())>((object.*member)()); });
  };
}

}  // namespace dic::python

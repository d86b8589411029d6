#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace dic::core {

/// A pool of reusable objects: after the first frames nothing is allocated any more. When the last copy of a
/// handle is gone, its object returns to the pool. Handles may outlive the pool.
template <typename T>
class ObjectPool {
 public:
  using Handle = std::shared_ptr<T>;

  Handle acquire() const {
    std::unique_ptr<T> object = free_->take();
    if (!object) object = std::make_unique<T>();
    return Handle(object.release(), [free = free_](T* back) { free->put(std::unique_ptr<T>(back)); });
  }

 private:
  class FreeList {
   public:
    std::unique_ptr<T> take() {
      const std::lock_guard lock(mutex_);
      if (objects_.empty()) return nullptr;
      std::unique_ptr<T> last = std::move(objects_.back());
      objects_.pop_back();
      return last;
    }
    void put(std::unique_ptr<T> object) {
      const std::lock_guard lock(mutex_);
      objects_.push_back(std::move(object));
    }

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> objects_;
  };

  std::shared_ptr<FreeList> free_ = std::make_shared<FreeList>();
};

}  // namespace dic::core

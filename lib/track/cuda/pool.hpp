#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace dic::track::cuda {

/// Objects that are lent and come back: after the first frames nothing is made any more. Loans may outlive
/// the pool.
template <typename T>
class Pool {
 public:
  using Loan = std::shared_ptr<T>;

  Loan lend() {
    std::unique_ptr<T> object = shelf_->take();
    if (!object) object = std::make_unique<T>();
    return Loan(object.release(), [shelf = shelf_](T* back) { shelf->put(std::unique_ptr<T>(back)); });
  }

 private:
  class Shelf {
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

  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace dic::track::cuda

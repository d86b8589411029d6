#include "image/opencv/quiet.hpp"

#include <atomic>
#include <iostream>
#include <mutex>
#include <streambuf>

namespace dic::image {
namespace {

thread_local int quiet_depth = 0;

/// A buffer that passes on the output of all threads that are not quiet. It must outlive every use of
/// std::cerr, because a host program may take it for the original buffer and restore it later.
class Filter : public std::streambuf {
 public:
  void enter() {
    std::lock_guard lock(mutex_);
    if (users_++ == 0) original_ = std::cerr.rdbuf(this);
  }
  void leave() {
    std::lock_guard lock(mutex_);
    if (--users_ == 0 && std::cerr.rdbuf() == this) std::cerr.rdbuf(original_);
  }

 protected:
  int_type overflow(int_type c) override {
    return quiet_depth > 0 ? traits_type::not_eof(c) : original_.load()->sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return quiet_depth > 0 ? size : original_.load()->sputn(text, size);
  }
  int sync() override { return quiet_depth > 0 ? 0 : original_.load()->pubsync(); }

 private:
  std::mutex mutex_;
  int users_ = 0;
  std::atomic<std::streambuf*> original_ = nullptr;
};

Filter& filter() {
  static auto* instance = new Filter;
  return *instance;
}

}  // namespace

QuietCerr::QuietCerr() {
  filter().enter();
  ++quiet_depth;
}

QuietCerr::~QuietCerr() {
  --quiet_depth;
  filter().leave();
}

}  // namespace dic::image

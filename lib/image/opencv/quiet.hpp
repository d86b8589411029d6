#pragma once

namespace dic::image {

/// Discards everything that this thread writes to std::cerr during the object's lifetime: OpenCV writes its
/// log and the exceptions that it catches there. Output of other threads passes. std::cerr belongs to the
/// whole program, so its buffer is replaced only during a call, and OpenCV's log level stays unchanged.
class QuietCerr {
 public:
  QuietCerr();
  ~QuietCerr();
  QuietCerr(const QuietCerr&) = delete;
  QuietCerr& operator=(const QuietCerr&) = delete;
};

}  // namespace dic::image

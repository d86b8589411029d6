#pragma once

namespace dic {

/// While one lives, what this thread writes to std::cerr is dropped: OpenCV writes its log and the exceptions
/// that it catches there. Other threads' output passes. std::cerr belongs to the whole program, so its buffer
/// is replaced only for the time of a call, and OpenCV's log level is not touched at all.
class QuietCerr {
 public:
  QuietCerr();
  ~QuietCerr();
  QuietCerr(const QuietCerr&) = delete;
  QuietCerr& operator=(const QuietCerr&) = delete;
};

}  // namespace dic

#pragma once

#include <dic/shared/export.hpp>
#include <stdexcept>
#include <string>

namespace dic {

/// Base of all exceptions of the library. `what()` is one sentence that says what is wrong and what to do.
class DIC_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller asked for something that makes no sense: an even subset, an empty ROI, mismatched sizes.
class DIC_API UsageError : public Error {
 public:
  using Error::Error;
};

/// A file or folder is missing, unreadable, damaged, not writable, or the disk is full.
class DIC_API FileError : public Error {
 public:
  using Error::Error;
};

/// A compute device is missing or failed. Never thrown after wrong data was returned.
class DIC_API DeviceError : public Error {
 public:
  using Error::Error;
};

/// A long call ended because its stop token was set. What was finished before stays valid.
class DIC_API Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace dic

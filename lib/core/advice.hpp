#pragma once

#include <cerrno>
#include <string>

namespace dic::core {

/// Advice if a process or the machine has too many files open; empty for other errors.
inline std::string advice_for_open_files(int error) {
  if (error == EMFILE) return "this process may open no more files: raise the limit (ulimit -n)";
  if (error == ENFILE) return "the machine has too many open files: close other programs";
  return {};
}

/// Advice after an error (errno) of reading a file, as the end of a sentence.
inline std::string advice_for_reading(int error) {
  const std::string files = advice_for_open_files(error);
  return files.empty() ? "check the file and its permissions" : files;
}

/// Advice after an error (errno) of writing a file, as the end of a sentence. 0 = unknown error.
inline std::string advice_for_writing(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space or choose another place";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check your rights there or choose another place";
    case EMFILE:
    case ENFILE:
      return advice_for_open_files(error);
    default:
      return "free some space, check your rights there or choose another place";
  }
}

}  // namespace dic::core

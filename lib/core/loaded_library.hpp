#pragma once

#include <string>

namespace dic::core {

/// A shared library that is opened while the program runs, so that one program serves machines with and
/// without it. It stays loaded until the program ends.
class LoadedLibrary {
 public:
  /// file: its name for the system's loader, such as libOpenCL.so.1
  explicit LoadedLibrary(const char* file);

  /// Finds the function `name`; nullptr if the library or the function is missing.
  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol(name));
  }

  /// One sentence on what is missing; empty if the library and all functions were found. name: of the library
  /// in the sentence; install, update: what to do if the library or a function is missing.
  std::string problem(const std::string& name, const std::string& install, const std::string& update) const;

 private:
  void* symbol(const char* name);

  std::string file_name_, reason_, missing_;
  void* file_ = nullptr;
};

}  // namespace dic::core

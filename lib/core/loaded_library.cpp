#include "core/loaded_library.hpp"

#include <dlfcn.h>

namespace dic::core {

LoadedLibrary::LoadedLibrary(const char* file)
    : file_name_(file), file_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (!file_) reason_ = dlerror();
}

void* LoadedLibrary::symbol(const char* name) {
  void* found = file_ ? dlsym(file_, name) : nullptr;
  if (!found && missing_.empty()) missing_ = name;
  return found;
}

std::string LoadedLibrary::problem(const std::string& name, const std::string& install,
                                   const std::string& update) const {
  if (!file_) return name + " was not found (" + reason_ + "): " + install + ".";
  if (!missing_.empty()) return file_name_ + " lacks " + missing_ + ": " + update + ".";
  return "";
}

}  // namespace dic::core

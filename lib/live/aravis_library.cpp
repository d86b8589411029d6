#include "live/aravis_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace dic::live::arv {
namespace {

constexpr const char* kLibraryName = "libaravis-0.8.so.0";

Library load() {
  Library found;
  void* file = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);  // stays loaded until the program ends
  if (!file) {
    found.problem = std::string("The library for GenICam cameras was not found (") + dlerror() +
                    "): install Aravis (Debian: libaravis-0.8-0).";
    return found;
  }
#define DIC_ARAVIS_FIND(type, name, arguments)                             \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(file, #name)); \
  if (!found.name) found.problem = std::string(kLibraryName) + " lacks " #name ": update Aravis.";
  DIC_ARAVIS_FUNCTIONS(DIC_ARAVIS_FIND)
#undef DIC_ARAVIS_FIND
  if (found.problem.empty()) found.arv_enable_interface("Fake");
  return found;
}

}  // namespace

const Library& library() {
  static const Library functions = load();
  return functions;
}

}  // namespace dic::live::arv

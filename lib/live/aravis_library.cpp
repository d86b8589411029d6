#include "live/aravis_library.hpp"

#include "core/loaded_library.hpp"

namespace dic::live::arv {
namespace {

Library load() {
  Library found;
  core::LoadedLibrary file("libaravis-0.8.so.0");
#define DIC_ARAVIS_FIND(type, name, arguments) file.find(#name, found.name);
  DIC_ARAVIS_FUNCTIONS(DIC_ARAVIS_FIND)
#undef DIC_ARAVIS_FIND
  found.problem = file.problem("The library for GenICam cameras", "install Aravis (Debian: libaravis-0.8-0)",
                               "update Aravis");
  if (found.problem.empty()) found.arv_enable_interface("Fake");
  return found;
}

}  // namespace

const Library& library() {
  static const Library functions = load();
  return functions;
}

}  // namespace dic::live::arv

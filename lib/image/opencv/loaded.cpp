#include <dlfcn.h>

#include "image/codecs.hpp"
#include "image/opencv/table.hpp"

namespace dic::image {
namespace {

Refusal not_loaded(const std::string& why) {
  return Refusal("needs the codecs of OpenCV, which cannot be loaded (" + why +
                 "); install dic and OpenCV again.");
}

/// The path of the module, which lies beside libdic itself.
std::filesystem::path module_path() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&opencv_codecs), &here) == 0 || !here.dli_fname)
    throw not_loaded("libdic is not where it was");
  return std::filesystem::absolute(here.dli_fname).parent_path() / DIC_CODECS_FILE;
}

const OpenCvCodecs* load() {
  void* module = dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* table = module ? dlsym(module, "dic_opencv_codecs") : nullptr;
  if (!table) throw not_loaded(dlerror());
  return static_cast<const OpenCvCodecs*>(reinterpret_cast<decltype(&dic_opencv_codecs)>(table)());
}

}  // namespace

const OpenCvCodecs& opencv_codecs() {
  static const OpenCvCodecs* codecs = load();
  return *codecs;
}

}  // namespace dic::image

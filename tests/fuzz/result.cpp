/// Input: a result.vtkhdf. It is read as dic report reads it.
#include <dic/error.hpp>
#include <dic/result.hpp>

#include "memory_file.hpp"
#include "view/report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  try {
    const dic::Result result(file.path());
    for (int frame = 0; frame < result.frame_count(); ++frame) result.field(frame);
    dic::app::report_html(result, {}, {}, {});
  } catch (const dic::Error&) {
  }
  return 0;
}

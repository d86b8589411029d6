/// Input: an image file of any format.
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>

#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  try {
    const dic::Image image = dic::read_image(file.path());
    dic::require(image.width() > 0 && image.height() > 0);
    if (image.type() != dic::ScalarType::f32) return 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) dic::require(std::isfinite(image.row<float>(y)[x]));
  } catch (const dic::FileError&) {
  }
  return 0;
}

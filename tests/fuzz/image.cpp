/// Input: an image file of any format.
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>

#include "memory_file.hpp"

namespace {

void check(const dic::Image& image) {
  dic::require(image.width() > 0 && image.height() > 0);
  if (image.type() != dic::ScalarType::f32) return;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) dic::require(std::isfinite(image.row<float>(y)[x]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  try {
    check(dic::read_image(file.path()));
    check(dic::read_mask(file.path()));
    const auto frames = dic::open_frames({file.path().string()});
    check(frames->read(frames->count().value_or(1) - 1));
  } catch (const dic::FileError&) {
  }
  return 0;
}

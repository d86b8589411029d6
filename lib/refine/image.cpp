#include "refine/image.hpp"

#include <algorithm>
#include <dic/shared/reflect.hpp>

namespace dic::refine {

PaddedImage::PaddedImage(int width, int height, core::ThreadPool& pool)
    : width_(width), height_(height), stride_((width + 2 * kMargin + kTail + 15) / 16 * 16) {
  data_ = PixelMemory::uninitialized((stride_ * (height + 2 * kMargin) + kTail) * sizeof(float));
  core::for_each_row(pool, height, [&](int y) {
    std::fill(at(-kMargin, y), at(0, y), 0.0F);
    std::fill(at(width, y), at(-kMargin, y + 1), 0.0F);
  });
  std::fill(first(), at(-kMargin, 0), 0.0F);
  std::fill_n(at(-kMargin, height), stride_ * kMargin + kTail, 0.0F);
}

void PaddedImage::reflect_margin() {
  for (int y = 0; y < height_; ++y)
    for (int k = 1; k <= kMargin; ++k)
      for (const int x : {-k, width_ - 1 + k})
        *at(x, y) = point_reflected([&](int i) { return *at(i, y); }, width_, x);
  for (int k = 1; k <= kMargin; ++k)
    for (const int y : {-k, height_ - 1 + k})
      for (int x = -kMargin; x < width_ + kMargin; ++x)
        *at(x, y) = point_reflected([&](int i) { return *at(x, i); }, height_, y);
}

PaddedImage to_float(ImageView image, core::ThreadPool& pool) {
  PaddedImage out(image.width, image.height, pool);
  visit_scalar(image.type, [&](auto element) {
    pool.parallel_for(image.height, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (int y = static_cast<int>(begin); y < end; ++y) {
        const auto* row = image.row<decltype(element)>(y);
        std::transform(row, row + image.width, out.at(0, y), [](auto v) { return static_cast<float>(v); });
      }
    });
  });
  return out;
}

}  // namespace dic::refine

#include "refine/picture.hpp"

#include <algorithm>

namespace dic {

PaddedPicture::PaddedPicture(int width, int height)
    : width_(width), height_(height), stride_((width + 2 * kMargin + kTail + 15) / 16 * 16) {
  data_ = std::make_unique<float[]>(stride_ * (height + 2 * kMargin) + kTail);
}

void PaddedPicture::mirror_margin() {
  const auto mirrored = [](int i, int n) {
    const int period = std::max(1, 2 * (n - 1));
    const int wrapped = ((i % period) + period) % period;
    return std::min(wrapped, period - wrapped) % n;
  };
  for (int y = 0; y < height_; ++y)
    for (int k = 1; k <= kMargin; ++k) {
      *at(-k, y) = *at(mirrored(-k, width_), y);
      *at(width_ - 1 + k, y) = *at(mirrored(width_ - 1 + k, width_), y);
    }
  for (int k = 1; k <= kMargin; ++k) {
    std::copy_n(at(-kMargin, mirrored(-k, height_)), width_ + 2 * kMargin, at(-kMargin, -k));
    std::copy_n(at(-kMargin, mirrored(height_ - 1 + k, height_)), width_ + 2 * kMargin,
                at(-kMargin, height_ - 1 + k));
  }
}

PaddedPicture to_float(ImageView picture, ThreadPool& pool) {
  PaddedPicture out(picture.width, picture.height);
  visit_scalar(picture.type, [&](auto element) {
    pool.parallel_for(picture.height, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (int y = static_cast<int>(begin); y < end; ++y) {
        const auto* row = picture.row<decltype(element)>(y);
        std::transform(row, row + picture.width, out.at(0, y), [](auto v) { return static_cast<float>(v); });
      }
    });
  });
  return out;
}

}  // namespace dic

#include "match/pose_image.hpp"

#include <algorithm>

namespace dic::match {
namespace {

constexpr int kRows = 16;  ///< rows per task

/// One row of the smaller image from four rows.
template <typename T>
void reduce_row(const T* a, const T* b, const T* c, const T* d, int width, float* columns, float* out) {
  float* middle = columns + 1;
  for (int x = 0; x < width; ++x)
    middle[x] = static_cast<float>(a[x]) + static_cast<float>(d[x]) +
                3 * (static_cast<float>(b[x]) + static_cast<float>(c[x]));
  columns[0] = middle[0];
  middle[width] = middle[width - 1];
  constexpr float kNorm = 1.0F / 64;
  for (int x = 0; x < width / 2; ++x) {
    const float* p = columns + 2 * x;
    out[x] = kNorm * (p[0] + p[3] + 3 * (p[1] + p[2]));
  }
}

template <typename T>
FloatImage reduce(const ImageView& image, core::ThreadPool& pool) {
  FloatImage out(image.width / 2, image.height / 2);
  pool.parallel_for(out.height, kRows, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> columns(image.width + 2);
    for (int y = static_cast<int>(begin); y < end; ++y)
      reduce_row(image.row<T>(std::max(2 * y - 1, 0)), image.row<T>(2 * y), image.row<T>(2 * y + 1),
                 image.row<T>(std::min(2 * y + 2, image.height - 1)), image.width, columns.data(),
                 out.row(y));
  });
  return out;
}

ImageView view_of(const FloatImage& image) {
  return {image.values.data(),
          ScalarType::f32,
          image.width,
          image.height,
          static_cast<std::ptrdiff_t>(image.width * sizeof(float)),
          0};
}

}  // namespace

FloatImage float_image(ImageView image, core::ThreadPool& pool) {
  FloatImage out(image.width, image.height);
  visit_scalar(image.type, [&]<typename T>(T) {
    for_each_row(pool, image.height, [&](int y) {
      std::transform(image.row<T>(y), image.row<T>(y) + image.width, out.row(y),
                     [](T value) { return static_cast<float>(value); });
    });
  });
  return out;
}

FloatImage reduced(ImageView image, core::ThreadPool& pool) {
  FloatImage out;
  visit_scalar(image.type, [&]<typename T>(T) { out = reduce<T>(image, pool); });
  return out;
}

FloatImage reduced(const FloatImage& image, core::ThreadPool& pool) {
  return reduce<float>(view_of(image), pool);
}

FloatImage reduced_mask(const FloatImage& mask) {
  FloatImage out(mask.width / 2, mask.height / 2);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const float *a = mask.row(2 * y) + 2 * x, *b = mask.row(2 * y + 1) + 2 * x;
      out.row(y)[x] = a[0] * a[1] * b[0] * b[1];
    }
  return out;
}

}  // namespace dic::match

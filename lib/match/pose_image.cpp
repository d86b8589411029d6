#include "match/pose_image.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "match/pose_kernels.hpp"

namespace dic::match {
namespace {

constexpr int kRows = 16;  ///< rows per task

/// The rows of an image from which a row of the smaller one is made.
template <typename T>
std::array<const T*, 4> rows_for(const ImageView& image, int y) {
  return {image.row<T>(std::max(2 * y - 1, 0)), image.row<T>(2 * y), image.row<T>(2 * y + 1),
          image.row<T>(std::min(2 * y + 2, image.height - 1))};
}

template <typename T>
void reduce(const ImageView& image, core::ThreadPool& pool, FloatImage& out) {
  out.resize(image.width / 2, image.height / 2);
  pool.parallel_for(out.height, kRows, [&](std::int64_t begin, std::int64_t end, int) {
    constexpr bool is_direct = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, float>;
    std::vector<std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint16_t, float>> columns(
        image.width + 2);
    std::vector<float> floats(is_direct ? 0 : 4 * static_cast<std::size_t>(image.width));
    for (int y = static_cast<int>(begin); y < end; ++y) {
      const std::array<const T*, 4> rows = rows_for<T>(image, y);
      if constexpr (is_direct) {
        halve_rows(rows, image.width, columns.data(), out.row(y));
      } else {
        std::array<const float*, 4> as_floats;
        for (int k = 0; k < 4; ++k) {
          float* row = floats.data() + static_cast<std::ptrdiff_t>(k) * image.width;
          std::transform(rows[k], rows[k] + image.width, row, [](T v) { return static_cast<float>(v); });
          as_floats[k] = row;
        }
        halve_rows(as_floats, image.width, columns.data(), out.row(y));
      }
    }
  });
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

void make_float_image(ImageView image, core::ThreadPool& pool, FloatImage& out) {
  out.resize(image.width, image.height);
  visit_scalar(image.type, [&]<typename T>(T) {
    for_each_row(pool, image.height, [&](int y) {
      std::transform(image.row<T>(y), image.row<T>(y) + image.width, out.row(y),
                     [](T value) { return static_cast<float>(value); });
    });
  });
}

FloatImage float_image(ImageView image, core::ThreadPool& pool) {
  FloatImage out;
  make_float_image(image, pool, out);
  return out;
}

void make_reduced(ImageView image, core::ThreadPool& pool, FloatImage& out) {
  visit_scalar(image.type, [&]<typename T>(T) { reduce<T>(image, pool, out); });
}

void make_reduced(const FloatImage& image, core::ThreadPool& pool, FloatImage& out) {
  reduce<float>(view_of(image), pool, out);
}

FloatImage reduced(const FloatImage& image, core::ThreadPool& pool) {
  FloatImage out;
  make_reduced(image, pool, out);
  return out;
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

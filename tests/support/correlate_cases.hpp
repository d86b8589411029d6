#pragma once

#include <cmath>
#include <cstring>
#include <dic/correlate.hpp>
#include <random>

#include "core/cuda_devices.hpp"
#include "correlate/backend.hpp"
#include "support/requirements.hpp"

namespace dic::test {

struct TestImage {
  ImageView view;
  std::vector<std::byte> bytes;

  TestImage(int width, int height, ScalarType type, int padding = 5) {
    const auto size = static_cast<std::ptrdiff_t>(dic::size_of(type));
    const std::ptrdiff_t row = (width + padding) * size;
    bytes.resize(static_cast<std::size_t>(row * height + size));
    // The data starts one element late and no byte follows the last row, so that tools find every overrun.
    view = {bytes.data() + (padding ? size : 0), type, width, height, row, 0};
  }
  template <typename T>
  T& at(int y, int x) {
    return const_cast<T*>(view.row<T>(y))[x];
  }
  double get(int y, int x) const {
    return dic::visit_scalar(
        view.type, [&](auto element) { return static_cast<double>(view.row<decltype(element)>(y)[x]); });
  }
  void set(int y, int x, double value) {
    dic::visit_scalar(view.type, [&](auto element) {
      using T = decltype(element);
      at<T>(y, x) = static_cast<T>(value);
    });
  }
};

inline TestImage noise(int width, int height, ScalarType type, unsigned seed, int padding = 5) {
  TestImage image(width, height, type, padding);
  std::mt19937 random(seed);
  const bool wide = type == ScalarType::u16;
  const bool real = type == ScalarType::f32 || type == ScalarType::f64;
  std::uniform_real_distribution<double> value(type == ScalarType::i32 ? -500000 : (real ? -100 : 0),
                                               type == ScalarType::i32 ? 500000 : (wide ? 65535.99 : 255.99));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.set(y, x, real ? value(random) : std::floor(value(random)));
  return image;
}

struct Case {
  Pairing pairing = Pairing::one_to_one;
  int ref_h = 0, ref_w = 0, search_h = 0, search_w = 0;
  Shifts shifts = {};
  std::vector<PatchPosition> references = {}, windows = {};
};

inline CorrelateRequest request_of(const Case& c, const ImageView& reference, const ImageView& search,
                                   Criterion criterion, const std::string& variant) {
  CorrelateRequest request;
  request.pairing = c.pairing;
  request.reference = {{&reference, 1}, c.references, {c.ref_w, c.ref_h}};
  request.search = {{&search, 1}, c.windows, {c.search_w, c.search_h}};
  request.shifts = c.shifts;
  request.criterion = criterion;
  request.variant = variant;
  return request;
}

}  // namespace dic::test

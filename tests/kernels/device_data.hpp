#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <random>
#include <vector>

/// Images and arrays in device memory for the tests of the supporting kernels: poisoned, unaligned, with
/// guard memory around them that must not change.
namespace dic::test {

constexpr std::uint8_t device_poison = 0xa5;

/// Random values; `different`, if given, limits the number of distinct values.
template <typename T>
std::vector<T> random_values(std::size_t count, unsigned seed, int different = 0) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if (different > 0)
      value = static_cast<T>(random() % different);
    else if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(std::uniform_real_distribution<double>(-2.0, 3.0)(random));
    else
      value = static_cast<T>(random());
  }
  return values;
}

/// h rows of w elements, which start one element into the memory, with `pad` elements between rows.
template <typename T>
class DeviceRows {
 public:
  /// Poisoned rows, to be written.
  DeviceRows(int w, int h, const kernels::Stream& stream, int pad = 3) : w_(w), h_(h), pitch_(w + pad) {
    memory_.reserve(bytes());
    kernels::fill(memory_.data(), device_poison, bytes(), stream.handle());
  }
  DeviceRows(int w, int h, const std::vector<T>& values, const kernels::Stream& stream, int pad = 3)
      : DeviceRows(w, h, stream, pad) {
    if (!values.empty())
      kernels::upload(data(), pitch_ * sizeof(T), values.data(), w * sizeof(T), w * sizeof(T), h, stream);
  }

  T* data() const { return static_cast<T*>(memory_.data()) + 1; }
  std::ptrdiff_t pitch() const { return pitch_; }
  kernels::DeviceImage image() const { return {data(), row_bytes(), w_, h_}; }
  kernels::DevicePlane<T> plane() const { return {data(), row_bytes()}; }

  /// The elements; checks that the memory around them is still poisoned.
  std::vector<T> values(const kernels::Stream& stream) const {
    std::vector<T> all(bytes() / sizeof(T)), inside;
    kernels::download(all.data(), memory_.data(), bytes(), stream);
    stream.synchronize("downloading");
    T poison;
    std::fill_n(reinterpret_cast<std::uint8_t*>(&poison), sizeof(T), device_poison);
    std::size_t changed = 0;
    for (std::ptrdiff_t i = 0; i < std::ssize(all); ++i) {
      const std::ptrdiff_t x = (i - 1) % pitch_;
      if (i >= 1 && x < w_ && (i - 1) / pitch_ < h_)
        inside.push_back(all[i]);
      else
        changed += all[i] != poison;
    }
    EXPECT_EQ(changed, 0u) << "elements outside the result were written";
    return inside;
  }

 private:
  std::ptrdiff_t row_bytes() const { return pitch_ * static_cast<std::ptrdiff_t>(sizeof(T)); }
  std::size_t bytes() const { return (pitch_ * h_ + 1) * sizeof(T); }

  int w_, h_;
  std::ptrdiff_t pitch_;
  kernels::DeviceBuffer memory_;
};

}  // namespace dic::test

#pragma once

#include <bit>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <utility>
#include <vector>

#include "refine/image.hpp"
#include "support/gpu_test.hpp"
#include "support/speckle.hpp"

namespace dic::test {

/// An image in device memory and a plane to be filled, with its margin.
class DeviceSpline {
 public:
  DeviceSpline(const Image& image, Interpolation interpolation)
      : layout_(image.width(), image.height()), interpolation_(interpolation) {
    const ImageView view = image;
    const std::size_t bytes = view.row_bytes * view.height;
    kernels::upload(pixels_.reserve(bytes), view.data, bytes, stream_);
    device_view_ = view;
    device_view_.data = pixels_.data();
  }

  using Coefficients = std::vector<kernels::CoefficientPair>;
  Coefficients coefficients() {
    auto* plane = poisoned<kernels::CoefficientPair>(plane_, layout_.elements());
    kernels::launch_spline_coefficients(device_view_, interpolation_, plane + layout_.origin(),
                                        stream_.handle());
    return fetched(plane, layout_.elements());
  }

  struct Reference {
    std::vector<kernels::ReferencePixel> pixels;
    std::vector<std::uint32_t> rest;
    kernels::GreyRange range;
  };
  Reference reference() {
    auto* pixels = poisoned<kernels::ReferencePixel>(pixels_plane_, layout_.elements());
    auto* rest = poisoned<std::uint32_t>(rest_plane_, layout_.elements());
    auto* range = poisoned<kernels::GreyRange>(range_, 1);
    kernels::launch_reference_pixels(device_view_, {}, interpolation_,
                                     {pixels + layout_.origin(), rest + layout_.origin()}, range,
                                     stream_.handle());
    return {fetched(pixels, layout_.elements()), fetched(rest, layout_.elements()), fetched(range, 1)[0]};
  }

  /// Coefficients of some rows only, of an image that has only the rows that are read for them.
  Coefficients coefficients(const kernels::RowRange& rows) {
    forget_rows_beyond(kernels::rows_for_spline(rows, device_view_.height));
    auto* plane = poisoned<kernels::CoefficientPair>(plane_, layout_.elements());
    kernels::launch_spline_coefficients(device_view_, rows, interpolation_, plane + layout_.origin(),
                                        stream_.handle());
    return fetched(plane, layout_.elements());
  }
  Reference reference(const kernels::RowRange& rows) {
    auto* range = range_.reserve<kernels::GreyRange>(1);
    kernels::fill(range, 0, sizeof(*range), stream_.handle());
    const int middle = device_view_.height / 2;
    kernels::launch_grey_range(device_view_, {middle, device_view_.height}, range, stream_.handle());
    kernels::launch_grey_range(device_view_, {0, middle}, range, stream_.handle());
    forget_rows_beyond(kernels::rows_for_spline(rows, device_view_.height));
    auto* pixels = poisoned<kernels::ReferencePixel>(pixels_plane_, layout_.elements());
    auto* rest = poisoned<std::uint32_t>(rest_plane_, layout_.elements());
    kernels::launch_reference_pixels(device_view_, rows, {}, interpolation_, range,
                                     {pixels + layout_.origin(), rest + layout_.origin()}, stream_.handle());
    return {fetched(pixels, layout_.elements()), fetched(rest, layout_.elements()), fetched(range, 1)[0]};
  }

  std::size_t index(int x, int y) const { return layout_.origin() + y * layout_.stride + x; }

 private:
  /// Makes the coefficients beyond these rows NaN.
  void forget_rows_beyond(const kernels::RowRange& rows) {
    auto* first = static_cast<std::byte*>(pixels_.data());
    const std::ptrdiff_t row = device_view_.row_bytes;
    kernels::fill(first, 0xff, rows.first * row, stream_.handle());
    kernels::fill(first + rows.last * row, 0xff, (device_view_.height - rows.last) * row, stream_.handle());
  }
  template <typename T>
  T* poisoned(kernels::DeviceBuffer& buffer, std::size_t count) {
    kernels::fill(buffer.reserve(count * sizeof(T)), 0xff, count * sizeof(T), stream_.handle());  // NaN
    return static_cast<T*>(buffer.data());
  }
  template <typename T>
  std::vector<T> fetched(const T* values, std::size_t count) {
    std::vector<T> out(count);
    kernels::download(out.data(), values, count * sizeof(T), stream_);
    stream_.synchronize("a spline");
    return out;
  }

  kernels::PlaneLayout layout_;
  Interpolation interpolation_;
  kernels::Stream stream_;
  kernels::DeviceBuffer pixels_, plane_, pixels_plane_, rest_plane_, range_;
  ImageView device_view_;
};

/// Gradient, grey levels per px: sums of two half-precision numbers, in a unit that is a power of two.
inline std::pair<double, double> gradient(const DeviceSpline::Reference& reference, std::size_t at) {
  const auto half = [](std::uint32_t bits) {
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
  };
  const double unit = std::ldexp(1, std::ilogb(reference.range.magnitude) - 13);
  const std::uint32_t most = reference.pixels[at].gradient, least = reference.rest[at];
  return {unit * (half(most) + half(least)), unit * (half(most >> 16) + half(least >> 16))};
}

}  // namespace dic::test

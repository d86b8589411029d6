#include "arrays.hpp"

#include <dic/error.hpp>
#include <string>

namespace dic::python {

namespace {

void check_memory(const Array& array, Memory memory) {
  if (!gpu_of(array)) return;
  if (array.device_type() != nb::device::cuda::value)
    throw UsageError("This array is in the memory of a device that dic does not know: only CUDA's are.");
  if (memory == Memory::host)
    throw UsageError(
        "This array is in the memory of a GPU: only Tracker and TrackStream take those, on a GPU. Pass "
        "array.get() (CuPy) or tensor.cpu() (PyTorch), or choose device=\"cuda\".");
}

ScalarType type_of(const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  if (type == nb::dtype<std::uint8_t>() || type == nb::dtype<bool>()) return ScalarType::u8;
  if (type == nb::dtype<std::uint16_t>()) return ScalarType::u16;
  if (type == nb::dtype<std::int32_t>()) return ScalarType::i32;
  if (type == nb::dtype<float>()) return ScalarType::f32;
  if (type == nb::dtype<double>()) return ScalarType::f64;
  throw UsageError(
      "An image has elements of type bool, uint8, uint16, int32, float32 or float64: convert the array with "
      "astype.");
}

// The last two dimensions from element `offset` on.
ImageView plane_of(const Array& array, std::int64_t offset) {
  const std::size_t y = array.ndim() - 2, x = array.ndim() - 1;
  const Size size = {static_cast<int>(array.shape(x)), static_cast<int>(array.shape(y))};
  if (array.shape(x) > 1 && array.stride(x) != 1)
    throw UsageError("The pixels of a row lie apart in memory: pass numpy.ascontiguousarray(image).");
  const ScalarType type = type_of(array);
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(type));
  const std::ptrdiff_t row = array.shape(y) > 1 ? array.stride(y) : size.width;
  const auto* first = static_cast<const std::byte*>(array.data()) + offset * bytes;
  return ImageView::of(first, type, size, row * bytes);
}

void check_size(const Array& array) {
  constexpr std::size_t kMost = 1 << 30;
  for (std::size_t i = 0; i < array.ndim(); ++i)
    if (array.shape(i) > kMost) throw UsageError("An image has at most 2^30 pixels.");
}

}  // namespace

std::optional<int> gpu_of(const Array& array) {
  const int device = array.device_type();
  if (device == nb::device::cpu::value || device == nb::device::cuda_host::value ||
      device == nb::device::cuda_managed::value)
    return std::nullopt;
  return array.device_id();
}

ImageView view_of(const Array& array, Memory memory) {
  check_memory(array, memory);
  check_size(array);
  if (array.ndim() != 2)
    throw UsageError("An image is an array [y, x] of grey values, but this array has " +
                     std::to_string(array.ndim()) + " dimensions.");
  return plane_of(array, 0);
}

std::vector<ImageView> views_of(const Array& array) {
  if (array.ndim() == 2) return {view_of(array)};
  check_memory(array, Memory::host);
  check_size(array);
  if (array.ndim() != 3)
    throw UsageError("Images are an array [image, y, x] or [y, x], but this array has " +
                     std::to_string(array.ndim()) + " dimensions.");
  std::vector<ImageView> views;
  for (std::size_t i = 0; i < array.shape(0); ++i)
    views.push_back(plane_of(array, static_cast<std::int64_t>(i) * array.stride(0)));
  return views;
}

NumpyArray numpy_of(Image image) {
  const auto height = static_cast<std::size_t>(image.height()),
             width = static_cast<std::size_t>(image.width());
  return visit_scalar(image.type(), [&](auto element) {
    using T = decltype(element);
    auto kept = std::make_unique<Image>(std::move(image));
    T* const data = kept->row<T>(0);
    const nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<Image*>(p); });
    return numpy_view(data, {height, width}, owner);
  });
}

}  // namespace dic::python

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <dic/image.hpp>
#include <dic/node_values.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace dic::python {

namespace nb = nanobind;

/// Any array that Python's buffer protocol or DLPack hands over, without a copy.
using Array = nb::ndarray<nb::ro>;

/// An array of numpy, by its name in type hints.
class NumpyArray : public nb::object {
 public:
  static bool is_any(nb::handle) { return true; }
  NB_OBJECT_DEFAULT(NumpyArray, nb::object, "numpy.typing.NDArray", is_any)
};

/// Memory that an array may lie in.
enum class Memory : std::uint8_t { host, any };

/// The number of the GPU that has the array; none where the host can read it.
std::optional<int> gpu_of(const Array& array);

/// A view of the rows of an array [y, x]. Throws UsageError: another number of dimensions, an element type
/// that an image does not have, elements of a row that are not neighbours, memory that cannot be read.
ImageView view_of(const Array& array, Memory memory = Memory::host);
/// Views of the images of an array [image, y, x], or of one image [y, x].
std::vector<ImageView> views_of(const Array& array);

/// The array that is a view of memory that `owner` keeps.
template <typename T>
NumpyArray numpy_view(T* data, std::initializer_list<std::size_t> shape, nb::handle owner) {
  return nb::borrow<NumpyArray>(
      nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner), nb::rv_policy::reference));
}

/// The array that takes over an object whose memory it is a view of.
template <typename T, typename Container>
NumpyArray numpy_of(Container&& container, const T* data, std::initializer_list<std::size_t> shape) {
  using Kept = std::remove_cvref_t<Container>;
  auto kept = std::make_unique<Kept>(std::forward<Container>(container));
  const nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<Kept*>(p); });
  return numpy_view(const_cast<T*>(data), shape, owner);
}

/// The array of a vector's values.
template <typename T>
NumpyArray numpy_of(std::vector<T> values) {
  const T* const data = values.data();
  const std::size_t count = values.size();
  return numpy_of(std::move(values), data, {count});
}

/// The image as an array [y, x] of its type.
NumpyArray numpy_of(Image image);

}  // namespace dic::python

#include "track/cuda/device_frame.hpp"

#include <cstring>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/spline.hpp>

namespace dic::track::cuda {
namespace {

std::size_t row_bytes_of(const ImageView& picture) { return picture.width * size_of(picture.type); }

std::size_t pitch_of(const ImageView& picture) {
  constexpr std::size_t alignment = 256;  // rows start at whole cache lines
  return (row_bytes_of(picture) + alignment - 1) / alignment * alignment;
}

/// Copies the rows into pinned memory, from where they go on while the host does something else.
const void* stage(kernels::PinnedBuffer& staging, const ImageView& picture) {
  const std::size_t row = row_bytes_of(picture), pitch = pitch_of(picture);
  auto* to = static_cast<std::byte*>(staging.reserve(pitch * picture.height));
  for (int y = 0; y < picture.height; ++y, to += pitch) {
    std::memcpy(to, picture.row<std::byte>(y), row);
    std::memset(to + row, 0, pitch - row);  // kernels read whole words, beyond the ends of rows too
  }
  return staging.data();
}

/// Copies rows that are in the memory of a GPU already.
void copy_rows(void* to, const ImageView& picture, const kernels::Stream& stream) {
  const std::size_t pitch = pitch_of(picture);
  kernels::fill(to, 0, pitch * picture.height, stream.handle());
  kernels::upload(to, pitch, picture.data, picture.row_bytes, row_bytes_of(picture), picture.height, stream);
}

}  // namespace

std::shared_ptr<const DeviceFrame> FrameUpload::take(ImageView picture) {
  const kernels::DeviceScope scope(device_);
  auto memory = pool_.lend();
  memory->ready.synchronize("the copy of a frame");  // of the frame that had this memory before
  memory->used.hold(stream_);
  const bool on_gpu = kernels::is_device_memory(picture.data);
  const std::size_t bytes = pitch_of(picture) * picture.height;
  const void* staged = on_gpu ? nullptr : stage(memory->staging, picture);
  memory->taking.start(stream_);
  void* pixels = memory->pixels.reserve(bytes);
  if (on_gpu)
    copy_rows(pixels, picture, stream_);
  else
    kernels::upload(pixels, staged, bytes, stream_);
  ImageView on_device = picture;
  on_device.data = pixels;
  on_device.row_bytes = static_cast<std::ptrdiff_t>(pitch_of(picture));
  const kernels::PlaneLayout layout(picture.width, picture.height);
  float* coefficients = memory->coefficients.reserve<float>(layout.elements()) + layout.origin();
  kernels::launch_spline_coefficients(on_device, interpolation_, coefficients, stream_.handle());
  memory->taking.stop(stream_);
  memory->ready.record(stream_);
  if (on_gpu) memory->ready.synchronize("the copy of a frame");  // the caller may change the pixels
  return std::make_shared<DeviceFrame>(on_device, coefficients, std::move(memory));
}

}  // namespace dic::track::cuda

#include "track/cuda/device_frame.hpp"

#include <cstring>
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

}  // namespace

std::shared_ptr<const DeviceFrame> FrameUpload::take(ImageView picture) {
  const kernels::DeviceScope scope(device_);
  auto memory = pool_.lend();
  memory->ready.synchronize("the copy of a frame");  // of the frame that had this memory before
  memory->used.hold(stream_);
  const std::size_t bytes = pitch_of(picture) * picture.height;
  const void* staged = stage(memory->staging, picture);
  memory->taking.start(stream_);
  void* pixels = memory->pixels.reserve(bytes);
  kernels::upload(pixels, staged, bytes, stream_);
  ImageView on_device = picture;
  on_device.data = pixels;
  on_device.row_bytes = static_cast<std::ptrdiff_t>(pitch_of(picture));
  const kernels::PlaneLayout layout(picture.width, picture.height);
  float* coefficients = memory->coefficients.reserve<float>(layout.elements()) + layout.origin();
  kernels::launch_spline_coefficients(on_device, interpolation_, coefficients, stream_.handle());
  memory->taking.stop(stream_);
  memory->ready.record(stream_);
  return std::make_shared<DeviceFrame>(on_device, coefficients, std::move(memory));
}

}  // namespace dic::track::cuda

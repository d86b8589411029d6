#include "track/cuda/device_frame.hpp"

#include <cstring>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/spline.hpp>
#include <utility>

namespace dic::track::cuda {
namespace {

std::size_t row_bytes_of(const ImageView& picture) { return picture.width * size_of(picture.type); }

std::size_t pitch_of(const ImageView& picture) {
  constexpr std::size_t alignment = 256;  // rows start at whole cache lines
  return (row_bytes_of(picture) + alignment - 1) / alignment * alignment;
}

/// Copies rows that are in the memory of a GPU already.
void copy_rows(void* to, const ImageView& picture, const kernels::Stream& stream) {
  const std::size_t pitch = pitch_of(picture);
  kernels::fill(to, 0, pitch * picture.height, stream.handle());
  kernels::upload(to, pitch, picture.data, picture.row_bytes, row_bytes_of(picture), picture.height, stream);
}

}  // namespace

StagedRows Stager::stage(const ImageView& picture) {
  if (kernels::is_device_memory(picture.data)) return nullptr;
  StagedRows staged = pool_.lend();
  const std::size_t row = row_bytes_of(picture), pitch = pitch_of(picture);
  auto* first = static_cast<std::byte*>(staged->reserve(pitch * picture.height));
  const auto rows_at_once = static_cast<std::int64_t>((1 << 18) / pitch + 1);  // a thread costs 10 us
  threads_.parallel_for(picture.height, rows_at_once, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t y = begin; y < end; ++y) {
      std::byte* to = first + y * pitch;
      std::memcpy(to, picture.row<std::byte>(static_cast<int>(y)), row);
      std::memset(to + row, 0, pitch - row);  // kernels read whole words, beyond the ends of rows too
    }
  });
  return staged;
}

std::shared_ptr<const DeviceFrame> FrameUpload::take(ImageView picture, StagedRows staged) {
  const kernels::DeviceScope scope(device_);
  auto memory = pool_.lend();
  memory->ready.synchronize("the copy of a frame");  // of the frame that had this memory before
  memory->used.hold(stream_);
  memory->staged = std::move(staged);
  const std::size_t bytes = pitch_of(picture) * picture.height;
  void* pixels = memory->pixels.reserve(bytes);
  memory->begun.mark(stream_);
  memory->upload.start(stream_);
  if (memory->staged)
    kernels::upload(pixels, memory->staged->data(), bytes, stream_);
  else
    copy_rows(pixels, picture, stream_);
  memory->upload.stop(stream_);
  ImageView on_device = picture;
  on_device.data = pixels;
  on_device.row_bytes = static_cast<std::ptrdiff_t>(pitch_of(picture));
  const kernels::PlaneLayout layout(picture.width, picture.height);
  kernels::CoefficientPair* coefficients =
      memory->coefficients.reserve<kernels::CoefficientPair>(layout.elements()) + layout.origin();
  memory->prefilter.start(stream_);
  kernels::launch_spline_coefficients(on_device, interpolation_, coefficients, stream_.handle());
  memory->prefilter.stop(stream_);
  memory->ready.record(stream_);
  if (!memory->staged) memory->ready.synchronize("the copy of a frame");  // the caller may change the pixels
  return std::make_shared<DeviceFrame>(on_device, coefficients, std::move(memory));
}

}  // namespace dic::track::cuda

#include "track/cuda/device_frame.hpp"

#include <cstring>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/spline.hpp>
#include <utility>

namespace dic::track::cuda {
namespace {

std::size_t row_bytes_of(const ImageView& picture) { return picture.width * size_of(picture.type); }

/// Copies rows that are in the memory of a GPU already.
void copy_rows(void* to, const ImageView& picture, const kernels::Stream& stream) {
  const std::size_t pitch = pitch_of(picture);
  kernels::fill(to, 0, pitch * picture.height, stream.handle());
  kernels::upload(to, pitch, picture.data, picture.row_bytes, row_bytes_of(picture), picture.height, stream);
}

/// Copies them from there.
void fetch_rows(void* to, const ImageView& picture) {
  const kernels::Stream stream;
  const std::size_t pitch = pitch_of(picture);
  std::memset(to, 0, pitch * picture.height);
  kernels::upload(to, pitch, picture.data, picture.row_bytes, row_bytes_of(picture), picture.height, stream);
  stream.synchronize("the copy of a frame");
}

}  // namespace

std::size_t pitch_of(const ImageView& picture) {
  constexpr std::size_t alignment = 256;
  return (row_bytes_of(picture) + alignment - 1) / alignment * alignment;
}

StagedRows Stager::stage(const ImageView& picture) {
  const bool on_device = kernels::is_device_memory(picture.data);
  if (on_device && !always_) return nullptr;
  StagedRows staged = pool_.lend();
  if (on_device) {
    fetch_rows(staged->reserve(pitch_of(picture) * picture.height), picture);
    return staged;
  }
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

/// Makes a view of the caller's pixels one of the frame's own.
void FrameUpload::place_pixels(ImageView& picture, FrameMemory& memory) {
  const std::size_t bytes = pitch_of(picture) * picture.height;
  void* pixels = stay_ ? memory.staged->data() : memory.pixels.reserve(bytes);
  if (!memory.staged)
    copy_rows(pixels, picture, stream_);
  else if (!stay_)
    kernels::upload(pixels, memory.staged->data(), bytes, stream_);
  picture.data = pixels;
  picture.row_bytes = static_cast<std::ptrdiff_t>(pitch_of(picture));
}

const kernels::CoefficientPair* FrameUpload::place_coefficients(const ImageView& picture,
                                                                FrameMemory& memory) {
  if (stay_) return nullptr;
  const kernels::PlaneLayout layout(picture.width, picture.height);
  auto* coefficients =
      memory.coefficients.reserve<kernels::CoefficientPair>(layout.elements()) + layout.origin();
  kernels::launch_spline_coefficients(picture, interpolation_, coefficients, stream_.handle());
  return coefficients;
}

std::shared_ptr<const DeviceFrame> FrameUpload::take(ImageView picture, StagedRows staged) {
  const kernels::DeviceScope scope(device_);
  auto memory = pool_.lend();
  memory->ready.synchronize("the copy of a frame");            // of the frame that had this memory before
  if (stay_) memory->used.synchronize("the copy of a frame");  // in bands, from the host
  memory->used.hold(stream_);
  memory->staged = std::move(staged);
  memory->begun.mark(stream_);
  memory->upload.start(stream_);
  place_pixels(picture, *memory);
  memory->upload.stop(stream_);
  memory->copied.record(stream_);
  refined_.hold(stream_);
  memory->prefilter.start(stream_);
  const kernels::CoefficientPair* coefficients = place_coefficients(picture, *memory);
  memory->prefilter.stop(stream_);
  memory->ready.record(stream_);
  if (!memory->staged) memory->copied.synchronize("the copy of a frame");  // the caller may change the pixels
  return std::make_shared<DeviceFrame>(++taken_, picture, coefficients, std::move(memory));
}

}  // namespace dic::track::cuda

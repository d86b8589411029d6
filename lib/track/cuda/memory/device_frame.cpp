#include "track/cuda/memory/device_frame.hpp"

#include <cstring>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/peer.hpp>
#include <dic/kernels/spline.hpp>
#include <utility>

#include "core/uncached_copy.hpp"

namespace dic::track::cuda {
namespace {

std::size_t row_bytes_of(const ImageView& image) { return image.width * size_of(image.type); }

/// Copies rows of an image that is in the memory of a GPU.
void copy_rows(std::byte* to, const ImageView& image, const kernels::RowRange& rows,
               const kernels::Stream& stream) {
  const std::size_t pitch = pitch_of(image);
  kernels::fill(to, 0, pitch * rows.count(), stream.handle());
  kernels::upload(to, pitch, image.row<std::byte>(rows.first), image.row_bytes, row_bytes_of(image),
                  rows.count(), stream);
}

/// Copies an image from the memory of a GPU to the host.
void fetch_rows(void* to, const ImageView& image) {
  const kernels::Stream stream;
  const std::size_t pitch = pitch_of(image);
  std::memset(to, 0, pitch * image.height);
  kernels::upload(to, pitch, image.data, image.row_bytes, row_bytes_of(image), image.height, stream);
  stream.synchronize("the copy of a frame");
}

/// Address of row `first` of the frame in device memory.
std::byte* pixels_from(const ArrivingFrame& frame, int first) {
  return static_cast<std::byte*>(frame.memory->pixels.data()) + pitch_of(frame.image) * first;
}

}  // namespace

std::size_t pitch_of(const ImageView& image) {
  return kernels::device_pitch(image.width, size_of(image.type));
}

StagedRows Stager::stage(const ImageView& image) {
  const bool on_device = kernels::is_device_memory(image.data);
  if (on_device && !device_images_) return nullptr;
  StagedRows staged = pool_.acquire();
  if (on_device) {
    fetch_rows(staged->reserve(pitch_of(image) * image.height), image);
    return staged;
  }
  const std::size_t pitch = pitch_of(image);
  auto* first = static_cast<std::byte*>(staged->reserve(pitch * image.height));
  const auto rows_at_once = static_cast<std::int64_t>((1 << 18) / pitch + 1);  // a thread costs 10 us
  constexpr int most_threads = 8;  // copy 16.8 MB in 0.5 ms, 4 threads in 0.8
  const auto copy_rows = [&](std::int64_t begin, std::int64_t end, int) {
    core::copy_rows_uncached(first + begin * pitch, pitch, image.row<std::byte>(static_cast<int>(begin)),
                             image.row_bytes, row_bytes_of(image), end - begin);
  };
  threads_.parallel_for(image.height, rows_at_once, copy_rows, most_threads);
  return staged;
}

StagedRows Stager::stage(const ImageView& image, const analysis::Conditioning& conditioning) {
  StagedRows staged = pool_.acquire();
  const std::size_t pitch = pitch_of(image);
  auto* first = static_cast<std::byte*>(staged->reserve(pitch * image.height));
  conditioning.write_uncached(image, first, pitch);
  return staged;
}

/// Replaces the view of the caller's pixels by one of the frame's own memory.
void FrameUpload::place_pixels(ArrivingFrame& frame) {
  ImageView& image = frame.image;
  FrameMemory& memory = *frame.memory;
  const std::size_t pitch = pitch_of(image), first = pitch * frame.own.first;
  auto* pixels = static_cast<std::byte*>(keep_on_host_ ? memory.staged->data()
                                                       : memory.pixels.reserve(pitch * image.height));
  if (!memory.staged)
    copy_rows(pixels + first, image, frame.own, stream_);
  else if (!keep_on_host_)
    kernels::upload(pixels + first, static_cast<const std::byte*>(memory.staged->data()) + first,
                    pitch * frame.own.count(), stream_);
  image.data = pixels;
  image.row_bytes = static_cast<std::ptrdiff_t>(pitch);
}

const kernels::CoefficientPair* FrameUpload::place_coefficients(const ImageView& image, FrameMemory& memory) {
  if (keep_on_host_) return nullptr;
  const kernels::PlaneLayout layout(image.width, image.height);
  auto* coefficients =
      memory.coefficients.reserve<kernels::CoefficientPair>(layout.elements()) + layout.origin();
  kernels::launch_spline_coefficients(image, interpolation_, coefficients, stream_.handle());
  return coefficients;
}

/// Finds saturated pixels. The host learns through pinned memory whether there are any.
void FrameUpload::find_saturated(const ImageView& image, FrameMemory& memory) {
  auto* any = memory.any_saturated.reserve<std::int32_t>(1);
  *any = 0;
  const std::int64_t words = kernels::SaturatedPixels{nullptr, image.width, image.height}.size();
  kernels::launch_find_saturated(image, memory.saturated.reserve<std::uint32_t>(words),
                                 largest_.reserve<std::uint32_t>(words), any, stream_.handle());
  memory.searched.record(stream_);
}

ArrivingFrame FrameUpload::begin(ImageView image, StagedRows staged, const kernels::RowRange& own) {
  const kernels::DeviceScope scope(device_);
  ArrivingFrame frame{image, pool_.acquire(), own};
  FrameMemory& memory = *frame.memory;
  memory.ready.synchronize("the copy of a frame");  // waits for the frame that used this memory before
  if (keep_on_host_) {                              // bands are copied from the host
    memory.used.synchronize("the copy of a frame");
    memory.field_made.synchronize("the copy of a frame");
  }
  memory.wait_unused(stream_);
  memory.staged = std::move(staged);
  memory.begin.record(stream_);
  memory.upload.start(stream_);
  place_pixels(frame);
  memory.uploaded.record(stream_);
  if (!memory.staged)
    memory.uploaded.synchronize("the copy of a frame");  // afterwards, the caller may change the pixels
  return frame;
}

void FrameUpload::send(const ArrivingFrame& frame, std::span<const ArrivingFrame> all) {
  const kernels::DeviceScope scope(device_);
  const int first = frame.own.first;
  for (const ArrivingFrame& other : all) {
    if (other.memory == frame.memory) continue;
    other.memory->wait_unused(stream_);
    kernels::copy_between(pixels_from(other, first), pixels_from(frame, first),
                          pitch_of(frame.image) * frame.own.count(), stream_.handle());
  }
  frame.memory->sent.record(stream_);
}

std::shared_ptr<const DeviceFrame> FrameUpload::finish(const ArrivingFrame& frame,
                                                       std::span<const ArrivingFrame> all) {
  const kernels::DeviceScope scope(device_);
  FrameMemory& memory = *frame.memory;
  for (const ArrivingFrame& other : all) stream_.wait(other.memory->sent);
  memory.upload.stop(stream_);
  find_saturated(frame.image, memory);
  stream_.wait(refined_);
  memory.prefilter.start(stream_);
  const kernels::CoefficientPair* coefficients = place_coefficients(frame.image, memory);
  memory.prefilter.stop(stream_);
  memory.ready.record(stream_);
  return std::make_shared<DeviceFrame>(++taken_, frame.image, coefficients, frame.memory);
}

}  // namespace dic::track::cuda

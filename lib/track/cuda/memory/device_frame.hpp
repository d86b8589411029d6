#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/kernels/saturated.hpp>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <vector>

#include "core/object_pool.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/cuda/gpu_timestamp.hpp"
#include "track/stopwatch.hpp"

namespace dic::track::cuda {

/// Distance between the starts of two rows of an image on a GPU, bytes: whole cache lines.
std::size_t pitch_of(const ImageView& image);

/// Rows of an image in pinned memory, from where they are copied to the GPUs while the host goes on; padded
/// with zeros, since kernels read whole words.
using StagedRows = core::ObjectPool<kernels::PinnedBuffer>::Handle;

/// Memory of one frame.
struct FrameMemory {
  StagedRows staged;  ///< rows that have not been copied to the GPU yet
  kernels::DeviceBuffer pixels, coefficients, saturated;
  kernels::PinnedBuffer any_saturated;
  kernels::Event uploaded;    ///< the pixels from the host have arrived
  kernels::Event sent;        ///< the same pixels were sent to the other GPUs
  kernels::Event searched;    ///< saturated pixels are found
  kernels::Event ready;       ///< all pixels and coefficients are there
  kernels::Event used;        ///< search and refinement read them no more
  kernels::Event field_made;  ///< the work that makes the field reads them no more
  GpuTimestamp begin;
  kernels::Stopwatch upload, prefilter;

  /// Makes `stream` wait until the pixels may be overwritten.
  void wait_unused(const kernels::Stream& stream) const {
    stream.wait(used);
    stream.wait(field_made);
  }
};

/// An image on the GPU, with its B-spline coefficients; or on the host, if it is measured in bands.
class DeviceFrame final : public Frame {
 public:
  DeviceFrame(std::uint64_t n, ImageView pixels, const kernels::CoefficientPair* spline,
              core::ObjectPool<FrameMemory>::Handle memory)
      : number(n), image(pixels), coefficients(spline), memory_(std::move(memory)) {}

  /// Makes `stream` wait until the frame is ready.
  void wait_ready(const kernels::Stream& stream) const { stream.wait(memory_->ready); }
  /// Declares that the work queued on `stream` so far is the last of search and refinement that reads the
  /// frame.
  void release_after(const kernels::Stream& stream) const { memory_->used.record(stream); }
  /// Declares the same for the work that makes the field, on another stream.
  void release_after_field(const kernels::Stream& stream) const { memory_->field_made.record(stream); }
  /// The saturated pixels; waits until they are known.
  kernels::SaturatedPixels saturated() const {
    memory_->searched.synchronize("the search of saturated pixels");
    const bool any = *static_cast<const std::int32_t*>(memory_->any_saturated.data()) != 0;
    return {any ? static_cast<const std::uint32_t*>(memory_->saturated.data()) : nullptr, image.width,
            image.height};
  }
  /// Seconds of copy and prefilter. The frame must be ready.
  double seconds() const { return memory_->upload.seconds() + memory_->prefilter.seconds(); }
  void add_spans(std::vector<StageSpan>& spans) const {
    track::add_spans(spans, memory_->begin.time(),
                     {{"upload", memory_->upload.seconds()}, {"prefilter", memory_->prefilter.seconds()}});
  }

  const std::uint64_t number;  ///< number among the frames of a GPU, from 1 on
  const ImageView image;       ///< device memory (bands: pinned memory), rows padded with zeros
  const kernels::CoefficientPair* const
      coefficients;  ///< address of pixel (0, 0) in a kernels::PlaneLayout; null for bands

 private:
  core::ObjectPool<FrameMemory>::Handle memory_;
};

/// Copies the rows of images into pinned memory.
class Stager {
 public:
  /// device_images: also copies images that are in the memory of a GPU.
  Stager(core::ThreadPool& pool, bool device_images) : threads_(pool), device_images_(device_images) {}

  /// Copies the rows of an image; null if the image is in the memory of a GPU and remains there.
  StagedRows stage(const ImageView& image);
  /// Copies the rows of an image on the host, corrected on the way.
  StagedRows stage(const ImageView& image, const analysis::Conditioning& conditioning);

 private:
  core::ThreadPool& threads_;
  bool device_images_;
  core::ObjectPool<kernels::PinnedBuffer> pool_;
};

/// A frame on its way to a GPU.
struct ArrivingFrame {
  ImageView image;  ///< device memory, which may be partly filled
  core::ObjectPool<FrameMemory>::Handle memory;
  kernels::RowRange own;  ///< rows that come from the host
};

/// Copies frames to a GPU, on a stream of its own: copies overlap with the measurement of other frames. Each
/// of several GPUs takes some rows from the host and sends them to the others over the faster links between
/// GPUs. GPUs send instead of reading, because copies of readers and of the halo exchange would wait for each
/// other. One call at a time.
class FrameUpload {
 public:
  /// keep_on_host: frames remain in pinned memory. refined: recorded when most points of the frame under way
  /// are refined, which leaves the GPU partly free.
  FrameUpload(int device, Interpolation interpolation, bool keep_on_host, const kernels::Event& refined)
      : device_(device), interpolation_(interpolation), keep_on_host_(keep_on_host), refined_(refined) {}

  /// Begins with these rows: with staged ones, or from the memory of a GPU if `staged` is null.
  ArrivingFrame begin(ImageView image, StagedRows staged, const kernels::RowRange& own);
  /// Copies own rows to the other GPUs. all: the frame on every GPU; empty if each GPU gets all rows from the
  /// host.
  void send(const ArrivingFrame& frame, std::span<const ArrivingFrame> all);
  /// Queues the rest. Call it after all GPUs have called send().
  std::shared_ptr<const DeviceFrame> finish(const ArrivingFrame& frame, std::span<const ArrivingFrame> all);

 private:
  void place_pixels(ArrivingFrame& frame);
  void find_saturated(const ImageView& image, FrameMemory& memory);
  const kernels::CoefficientPair* place_coefficients(const ImageView& image, FrameMemory& memory);

  int device_;
  Interpolation interpolation_;
  bool keep_on_host_;
  std::uint64_t taken_ = 0;
  const kernels::Event& refined_;
  /// Has normal priority: blocks of lower priority that remain when a refinement begins would occupy the
  /// places of some of its blocks until it ends.
  kernels::Stream stream_;
  kernels::DeviceBuffer largest_;  ///< scratch memory
  core::ObjectPool<FrameMemory> pool_;
};

}  // namespace dic::track::cuda

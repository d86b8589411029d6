#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/kernels/spline.hpp>
#include <dic/refine.hpp>
#include <memory>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/cuda/moment.hpp"
#include "track/cuda/pool.hpp"
#include "track/stopwatch.hpp"

namespace dic::track::cuda {

/// Distance between the starts of two rows of an image on a GPU, bytes: whole cache lines.
std::size_t pitch_of(const ImageView& image);

/// Rows of an image in pinned memory, from where they go to the GPUs while the host does something else; with
/// zeros between them, since kernels read whole words.
using StagedRows = Pool<kernels::PinnedBuffer>::Loan;

/// Memory of one frame.
struct FrameMemory {
  StagedRows staged;  ///< until they have been copied
  kernels::DeviceBuffer pixels, coefficients;
  kernels::Event uploaded;  ///< the pixels that come from the host
  kernels::Event sent;      ///< these, to the other GPUs
  kernels::Event ready;     ///< all pixels and coefficients
  kernels::Event used;      ///< nothing reads them any more
  Moment begun;
  kernels::Stopwatch upload, prefilter;
};

/// An image on the device, with its B-spline coefficients; or, where it is measured in bands, on the host.
class DeviceFrame final : public Frame {
 public:
  DeviceFrame(std::uint64_t n, ImageView pixels, const kernels::CoefficientPair* spline,
              Pool<FrameMemory>::Loan memory)
      : number(n), image(pixels), coefficients(spline), memory_(std::move(memory)) {}

  /// Work that is queued on `stream` from now on finds the frame ready.
  void hold(const kernels::Stream& stream) const { stream.wait(memory_->ready); }
  /// What is queued on `stream` by now is the last that reads the frame.
  void release_after(const kernels::Stream& stream) const { memory_->used.record(stream); }
  /// Seconds of copy and prefilter; the frame is ready.
  double seconds() const { return memory_->upload.seconds() + memory_->prefilter.seconds(); }
  void add_spans(std::vector<StageSpan>& spans) const {
    track::add_spans(spans, memory_->begun.time(),
                     {{"upload", memory_->upload.seconds()}, {"prefilter", memory_->prefilter.seconds()}});
  }

  const std::uint64_t number;  ///< of a GPU's frames, from 1 on
  const ImageView image;       ///< device memory (bands: pinned memory), rows padded with zeros
  const kernels::CoefficientPair* const
      coefficients;  ///< at the pixel (0, 0) of a kernels::PlaneLayout; bands: null

 private:
  Pool<FrameMemory>::Loan memory_;
};

/// Copies the rows of images into pinned memory.
class Stager {
 public:
  /// always: images in the memory of a GPU, too.
  Stager(int threads, bool always) : threads_(threads), always_(always) {}

  /// Null where the image is in the memory of a GPU already.
  StagedRows stage(const ImageView& image);

 private:
  ThreadPool threads_;
  bool always_;
  Pool<kernels::PinnedBuffer> pool_;
};

/// A frame on its way to a GPU.
struct ArrivingFrame {
  ImageView image;  ///< device memory, in part still to be filled
  Pool<FrameMemory>::Loan memory;
  kernels::RowRange own;  ///< rows that come from the host
};

/// Brings frames to a GPU, on a stream of its own: copies overlap with the measurement of other frames. Each
/// of several GPUs takes some rows and sends them to its neighbours, whose links are the faster ones; if they
/// fetched them, these copies and those of results would wait for each other. One call at a time.
class FrameUpload {
 public:
  /// stay: frames stay on the host. refined: most of the frame that is measured; the GPU has little to do
  /// then.
  FrameUpload(int device, Interpolation interpolation, bool stay, const kernels::Event& refined)
      : device_(device), interpolation_(interpolation), stay_(stay), refined_(refined) {}

  /// Takes these rows of the pixels: staged ones, or, where there are none, from the memory of a GPU.
  ArrivingFrame begin(ImageView image, StagedRows staged, const kernels::RowRange& own);
  /// Copies these rows to the others. all: GPUs that share out the rows; none where each begins with all
  /// rows.
  void send(const ArrivingFrame& frame, std::span<const ArrivingFrame> all);
  /// Queues the rest, when all were told to send their rows.
  std::shared_ptr<const DeviceFrame> finish(const ArrivingFrame& frame, std::span<const ArrivingFrame> all);

 private:
  void place_pixels(ArrivingFrame& frame);
  const kernels::CoefficientPair* place_coefficients(const ImageView& image, FrameMemory& memory);

  int device_;
  Interpolation interpolation_;
  bool stay_;
  std::uint64_t taken_ = 0;
  const kernels::Event& refined_;
  /// Blocks of lower priority that are left when a refinement begins would take the places of some of its
  /// blocks until it ends.
  kernels::Stream stream_;
  Pool<FrameMemory> pool_;
};

}  // namespace dic::track::cuda

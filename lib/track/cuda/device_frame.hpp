#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/picture.hpp>
#include <dic/refine.hpp>
#include <memory>

#include "track/backend.hpp"
#include "track/cuda/pool.hpp"

namespace dic::track::cuda {

/// Memory of one frame.
struct FrameMemory {
  kernels::PinnedBuffer staging;
  kernels::DeviceBuffer pixels, coefficients;
  kernels::Event ready;  ///< pixels and coefficients are there
  kernels::Event used;   ///< nothing reads them any more
  kernels::Stopwatch taking;
};

/// A picture on the device, with its B-spline coefficients.
class DeviceFrame final : public Frame {
 public:
  DeviceFrame(ImageView pixels, const float* spline, Pool<FrameMemory>::Loan memory)
      : picture(pixels), coefficients(spline), memory_(std::move(memory)) {}

  /// Work that is queued on `stream` from now on finds the frame ready.
  void hold(const kernels::Stream& stream) const { memory_->ready.hold(stream); }
  /// What is queued on `stream` by now is the last that reads the frame.
  void release_after(const kernels::Stream& stream) const { memory_->used.record(stream); }
  /// Seconds of copy and prefilter; the frame is ready.
  double seconds() const { return memory_->taking.seconds(); }

  const ImageView picture;          ///< device memory, rows padded with zeros
  const float* const coefficients;  ///< at the pixel (0, 0) of a kernels::PlaneLayout

 private:
  Pool<FrameMemory>::Loan memory_;
};

/// Brings frames to the device, on a stream of its own: copies overlap with the measurement of other frames.
class FrameUpload {
 public:
  FrameUpload(int device, Interpolation interpolation) : device_(device), interpolation_(interpolation) {}

  /// Takes the pixels. One call at a time.
  std::shared_ptr<const DeviceFrame> take(ImageView picture);

 private:
  int device_;
  Interpolation interpolation_;
  kernels::Stream stream_;
  Pool<FrameMemory> pool_;
};

}  // namespace dic::track::cuda

#include "stereo/frame_geometry.hpp"

// Stands in for frames_cuda.cpp in builds without CUDA, where no images are matched on a GPU.
namespace dic::stereo {

std::unique_ptr<FrameBackend> open_cuda_frames(const FrameGeometry&, int, core::ThreadPool&) {
  return nullptr;
}

}  // namespace dic::stereo

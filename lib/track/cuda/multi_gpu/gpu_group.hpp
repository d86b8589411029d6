#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "analysis/gpu_images.hpp"
#include "core/thread_team.hpp"
#include "track/backend.hpp"
#include "track/cuda/gpu_context.hpp"
#include "track/cuda/multi_gpu/load_balancer.hpp"

namespace dic::track::cuda {

/// An image on all GPUs.
struct GroupFrame final : Frame {
  double noise = 0;                                        ///< noise of the image, see image_noise
  std::vector<std::shared_ptr<const DeviceFrame>> on_gpu;  ///< the image on each GPU, by rank
};

/// The GPUs of a backend, each led by a thread of a team, and which of them measures which points.
class GpuGroup {
 public:
  /// memory: for images, on each GPU.
  GpuGroup(const TrackOptions& options, const ImageMemory& memory, const MeasuredScene& scene,
           const std::vector<kernels::Device>& devices, core::ThreadPool& pool);

  int size() const { return static_cast<int>(gpus_.size()); }
  GpuContext& operator[](int rank) const { return *gpus_[rank]; }
  GpuContext& first() const { return *gpus_.front(); }
  /// True if GPUs can read each other's memory.
  bool peer_access() const { return peer_access_; }
  core::ThreadTeam& team() { return team_; }
  LoadBalancer& balancer() { return balancer_; }
  /// Runs body(rank) for every GPU at once, with this GPU as the current device of the thread.
  void run(const std::function<void(int rank)>& body);
  /// Takes the pixels of an image. May be called while another thread measures.
  std::shared_ptr<const GroupFrame> upload(const ImageView& image);
  /// The same for an image on the host, which is corrected on the way.
  std::shared_ptr<const GroupFrame> upload(const ImageView& image,
                                           const analysis::Conditioning& conditioning);

 private:
  /// image: the pixels of the caller, or corrected ones in `staged`.
  std::shared_ptr<GroupFrame> upload(const ImageView& image, const StagedRows& staged);
  kernels::RowRange rows_from_host(int rank, int height) const;

  double noise_of(const ImageView& image);

  core::ThreadPool& pool_;
  const std::vector<analysis::NoisePatch>& noise_patches_;
  std::vector<std::unique_ptr<GpuContext>> gpus_;  ///< GPUs by rank, at least one
  const bool peer_access_;
  const bool
      shares_rows_;  ///< each GPU gets some rows of a frame from the host, and sends them to the others
  core::ThreadTeam team_;
  LoadBalancer balancer_;
  std::mutex uploading_;
  Stager stager_;
  std::unique_ptr<analysis::GpuPatches> patches_;  ///< null until an image came from a GPU
};

}  // namespace dic::track::cuda

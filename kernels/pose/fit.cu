#include "pose/fit.cuh"

namespace dic::kernels {
namespace {

using namespace fits;

// One thread takes the decisions of a fit while the others wait: the more blocks a multiprocessor has, the
// better. Few fits have large blocks, short lists small ones, and single warps if all multiprocessors are
// full.
constexpr int few_threads = 64, many_threads = 128, most_threads = 512;
constexpr int short_list = 1024;  // pixels
constexpr int few_fits = 132, many_fits = 1500;
/// Blocks per multiprocessor; leaves 128 registers.
constexpr int blocks_of(int threads) { return 512 / threads; }

/// One block's fit. kShears: may be affine.
template <int kThreads, bool kShears>
class BlockFit {
  static constexpr int threads = kThreads, warps = kThreads / warp_size;
  using Terms = FitTerms<kShears>;

 public:
  using Shared = fits::Shared<warps>;

  __device__ BlockFit(const PoseLevel& image, const PosePixels& pixels, const PoseTask& task, Shared& shared,
                      float* values)
      : image_{image}, pixels_(pixels), task_(task), shared_(shared), values_(values) {}

  __device__ void run(PoseResult& result) {
    clear_products(shared_);
    const float origin = origin_at<threads>(image_, pixels_, task_.start, shared_);
    auto* steps = reinterpret_cast<pose::FitSteps*>(shared_.steps);
    if (threadIdx.x == 0)
      new (steps) pose::FitSteps(task_.plan, task_.start, origin, pixels_.mean, pixels_.count);
    for (;;) {
      if (threadIdx.x == 0) shared_.goes_on = steps->begin_step();
      __syncthreads();
      if (!shared_.goes_on) break;
      const pose::ScoreSums sums = sample(steps->warp(), origin);
      if (threadIdx.x == 0) shared_.goes_on = steps->take_scores(sums);
      __syncthreads();
      if (!shared_.goes_on) {
        __syncthreads();
        continue;
      }
      const double gain = steps->gain(), offset = steps->offset();
      const float limit = steps->is_robust() ? limit_at(task_.plan.is_near, gain, offset) : 0;
      sum_products(static_cast<float>(gain), static_cast<float>(offset), limit);
      if (threadIdx.x < warp_size) take_products(*steps, shared_.products);
      __syncthreads();
    }
    const pose::Fit fit = steps->result();
    double structure = 0;
    if (task_.with_structure && fit.valid) structure = gradient_correlation(fit, origin);
    if (threadIdx.x == 0) result = {fit, structure};
  }

 private:
  __device__ pose::ScoreSums sample(const pose::Warp& warp, float origin) {
    const Sampler<BilinearImage> sampler(image_, warp);
    float parts[6] = {};
    for (int k = threadIdx.x; k < pixels_.padded; k += threads) {
      float v = __int_as_float(0x7fffffff);
      if (k < pixels_.count) v = sampler.at(pixels_.xi[k], pixels_.eta[k], origin);
      values_[k] = v;
      if (v != v) continue;
      add_scores(pixels_.t[k], v, parts);
    }
    double sums[6];
    block_sums(parts, shared_.score_sums, sums);
    return {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]};
  }

  __device__ float limit_at(bool is_near, double gain, double offset) {
    return limit_of<threads>(pixels_, values_, shared_, values_ + pixels_.padded, is_near, gain, offset);
  }

  __device__ void sum_products(float gain, float offset, float limit) {
    float sums[Terms::sums] = {};
    for (int k = threadIdx.x; k < pixels_.count; k += threads) {
      const float v = values_[k];
      if (v != v) continue;
      add_products<kShears>(pixels_, k, v, weight_of(v - gain * pixels_.t[k] - offset, limit), sums);
    }
    block_products<threads, kShears>(sums, shared_, shared_.products);
  }

  /// Correlation of the gradients of template and image over pixels that fit.
  __device__ double gradient_correlation(const pose::Fit& fit, float origin) {
    sample(fit.warp, origin);
    const double gain = fit.gain, offset = fit.offset + fit.gain * pixels_.mean - origin;
    const float limit = limit_at(false, gain, offset);
    const auto g = static_cast<float>(gain), o = static_cast<float>(offset);
    constexpr double half = 0.5;
    const auto left = shifted(image_, fit.warp, -half, 0), right = shifted(image_, fit.warp, half, 0);
    const auto above = shifted(image_, fit.warp, 0, -half), below = shifted(image_, fit.warp, 0, half);
    float parts[6] = {};
    for (int k = threadIdx.x; k < pixels_.count; k += threads) {
      const float v = values_[k];
      if (v != v) continue;
      const float w = weight_of(v - g * pixels_.t[k] - o, limit);
      if (w == 0) continue;
      const float xi = pixels_.xi[k], eta = pixels_.eta[k], tx = pixels_.tx[k], ty = pixels_.ty[k];
      const float gx = right.clamped(xi, eta) - left.clamped(xi, eta);
      const float gy = below.clamped(xi, eta) - above.clamped(xi, eta);
      parts[0] = fmaf(w, tx * tx + ty * ty, parts[0]);
      parts[1] = fmaf(w, gx * gx + gy * gy, parts[1]);
      parts[2] = fmaf(w, tx * gx + ty * gy, parts[2]);
    }
    double sums[6];
    block_sums(parts, shared_.score_sums, sums);
    return sums[0] > 0 && sums[1] > 0 ? sums[2] / sqrt(sums[0] * sums[1]) : 0;
  }
  const BilinearImage image_;
  const PosePixels& pixels_;
  const PoseTask& task_;
  Shared& shared_;
  float* values_;  ///< in shared memory: of all pixels, then the residuals of those of the median
};

template <int kThreads, bool kShears>
__global__ void __launch_bounds__(kThreads, blocks_of(kThreads))
    fit_poses(const __grid_constant__ PoseLevel image, const PosePixels* pixels, const PoseTask* tasks,
              PoseResult* results) {
  using Fit = BlockFit<kThreads, kShears>;
  __shared__ typename Fit::Shared shared;
  __shared__ PosePixels own;  // its pointers would need too many registers
  extern __shared__ float values[];
  const PoseTask& task = tasks[blockIdx.x];
  if (threadIdx.x == 0) own = pixels[task.pixels];
  __syncthreads();
  Fit(image, own, task, shared, values).run(results[blockIdx.x]);
}

template <int kThreads, bool kShears = false>
void launch_fits(const PoseFits& fits, int most_padded, StreamHandle stream) {
  const std::size_t bytes = sizeof(float) * (most_padded + std::min<std::size_t>(most_padded, most_medians));
  check(cudaFuncSetAttribute(fit_poses<kThreads, kShears>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory of the fits of poses");
  fit_poses<kThreads, kShears><<<grid_size(fits.count, 1), kThreads, bytes, stream>>>(
      fits.image, fits.pixels, fits.tasks, fits.results);
  check_launch("fits of poses");
}

}  // namespace

int most_pose_pixels() { return 8192; }

void launch_pose_fits(const PoseFits& fits, int most_padded, StreamHandle stream) {
  if (fits.count == 0) return;
  if (fits.shear)
    launch_fits<many_threads, true>(fits, most_padded, stream);
  else if (fits.count <= few_fits)
    launch_fits<most_threads>(fits, most_padded, stream);
  else if (most_padded <= short_list && fits.count >= many_fits)
    launch_fits<warp_size>(fits, most_padded, stream);
  else if (most_padded <= short_list)
    launch_fits<few_threads>(fits, most_padded, stream);
  else
    launch_fits<many_threads>(fits, most_padded, stream);
}

}  // namespace dic::kernels

#include <cooperative_groups.h>

#include "common/resident_blocks.hpp"
#include "pose/fit.cuh"

/// Fits of one template with long lists of pixels, which all blocks of a cooperative kernel share.
namespace dic::kernels {
namespace {

using namespace fits;

constexpr int threads = 192, warps = threads / warp_size;
constexpr bool shears = true;
using Terms = FitTerms<shears>;
constexpr int pixels_per_block = 2 * threads;
constexpr int blocks_per_multiprocessor = 2;

/// An image between whose pixels grey values are those of its quintic spline.
struct SplineImage {
  static constexpr int after = 0;
  SplineLevel level;

  __device__ float value(int column, int row, float fx, float fy) const {
    float across[6], down[6];
    weights(fx, across), weights(fy, down);
    const CoefficientPair* p =
        level.coefficients + static_cast<std::int64_t>(row - 2) * level.stride + column - 2;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 6; j += 2) {
      float upper = 0, lower = 0;
#pragma unroll
      for (int i = 0; i < 6; ++i) {
        const CoefficientPair c = p[static_cast<std::int64_t>(j) * level.stride + i];
        upper = fmaf(across[i], c.upper, upper), lower = fmaf(across[i], c.lower, lower);
      }
      sum = fmaf(down[j], upper, fmaf(down[j + 1], lower, sum));
    }
    return sum;
  }

 private:
  /// 120 times the quintic B-spline at the six knots around a fraction.
  __device__ static void weights(float t, float (&w)[6]) {
    const float s = 1 - t, t2 = t * t, s2 = s * s;
    const auto inner = [](float u, float u2) {
      return fmaf(u2, fmaf(u2, fmaf(-10.0f, u, 30.0f), -60.0f), 66.0f);
    };
    const auto outer = [](float near) {
      const float u = near + 1;
      return fmaf(fmaf(fmaf(fmaf(fmaf(5.0f, u, -45.0f), u, 150.0f), u, -210.0f), u, 75.0f), u, 51.0f);
    };
    w[0] = s2 * s2 * s, w[1] = outer(t), w[2] = inner(t, t2);
    w[3] = inner(s, s2), w[4] = outer(s), w[5] = t2 * t2 * t;
  }
};

/// Orders of the first block, which takes the decisions, to the others.
struct Orders {
  pose::Warp warp;
  double gain, offset;
  float limit;
  bool goes_on, weighs;
};

struct WholeJob {
  SplineImage image;
  PosePixels pixels;
  pose::FitPlan plan;
  pose::Warp start;
  float *values, *weights;
  double* sums;  // product_sums per block
  Orders* orders;
  WholeResult* result;
};

struct WholeShared : fits::Shared<warps> {
  double sums[6];
  float residuals[most_medians];
};

/// One block's part of a fit.
class WholeFit {
 public:
  __device__ WholeFit(const WholeJob& job, WholeShared& shared)
      : job_(job), shared_(shared), all_(cooperative_groups::this_grid()), leads_(blockIdx.x == 0) {}

  __device__ void run() {
    const float origin = origin_at<threads>(job_.image, job_.pixels, job_.start, shared_);
    if (leads_ && threadIdx.x == 0) {
      new (&steps()) pose::FitSteps(job_.plan, job_.start, origin, job_.pixels.mean, job_.pixels.count);
      *job_.orders = {};
      begin_step();
    }
    all_.sync();
    while (job_.orders->goes_on) {
      sample(job_.orders->warp, origin);
      all_.sync();
      if (leads_) take_scores();
      all_.sync();
      const bool weighs = job_.orders->weighs;
      if (weighs) sum_products(*job_.orders);
      all_.sync();
      if (leads_ && weighs) take_sums();
      if (leads_ && threadIdx.x == 0) begin_step();
      all_.sync();
    }
    if (leads_ && threadIdx.x == 0)
      *job_.result = {steps().result(), steps().gain(), steps().offset(), job_.orders->limit};
  }

 private:
  __device__ pose::FitSteps& steps() const { return *reinterpret_cast<pose::FitSteps*>(shared_.steps); }
  __device__ int first() const { return blockIdx.x * threads + threadIdx.x; }
  __device__ int step() const { return gridDim.x * threads; }
  __device__ void begin_step() const {
    job_.orders->goes_on = steps().begin_step();
    job_.orders->warp = steps().warp();
  }

  __device__ void sample(const pose::Warp& warp, float origin) const {
    const Sampler<SplineImage> sampler(job_.image, warp);
    float parts[6] = {};
    for (int k = first(); k < job_.pixels.count; k += step()) {
      const float v = sampler.at(job_.pixels.xi[k], job_.pixels.eta[k], origin);
      job_.values[k] = v;
      if (v == v) add_scores(job_.pixels.t[k], v, parts);
    }
    double sums[6];
    block_sums(parts, shared_.score_sums, sums);
    if (threadIdx.x == 0)
      for (int k = 0; k < 6; ++k) job_.sums[blockIdx.x * product_sums + k] = sums[k];
  }
  /// Sums up the blocks' sums.
  __device__ void sum_blocks(int count, double* out) const {
    for (int k = threadIdx.x / warp_size; k < count; k += warps) {
      double sum = 0;
      for (unsigned b = threadIdx.x % warp_size; b < gridDim.x; b += warp_size)
        sum += job_.sums[b * product_sums + k];
      sum = warp_sum(sum);
      if (threadIdx.x % warp_size == 0) out[k] = sum;
    }
    __syncthreads();
  }
  __device__ void take_scores() const {
    sum_blocks(6, shared_.sums);
    const double* s = shared_.sums;
    if (threadIdx.x == 0) shared_.goes_on = steps().take_scores({s[0], s[1], s[2], s[3], s[4], s[5]});
    __syncthreads();
    const double gain = steps().gain(), offset = steps().offset();
    float limit = 0;
    if (shared_.goes_on && steps().is_robust())
      limit = limit_of<threads>(job_.pixels, job_.values, shared_, shared_.residuals, job_.plan.is_near, gain,
                                offset);
    if (threadIdx.x != 0) return;
    Orders& orders = *job_.orders;
    orders.weighs = shared_.goes_on;
    if (orders.weighs) orders.gain = gain, orders.offset = offset, orders.limit = limit;
  }
  __device__ void sum_products(const Orders& orders) const {
    const auto gain = static_cast<float>(orders.gain), offset = static_cast<float>(orders.offset);
    const float limit = orders.limit;
    float sums[Terms::sums] = {};
    for (int k = first(); k < job_.pixels.count; k += step()) {
      const float v = job_.values[k];
      float w = 0;
      if (v == v) {
        w = weight_of(v - gain * job_.pixels.t[k] - offset, limit);
        add_products<shears>(job_.pixels, k, v, w, sums);
      }
      job_.weights[k] = w;
    }
    block_products<threads, shears>(sums, shared_, job_.sums + blockIdx.x * product_sums);
  }
  __device__ void take_sums() const {
    sum_blocks(product_sums, shared_.products);
    if (threadIdx.x < warp_size) take_products(steps(), shared_.products);
    __syncthreads();
  }

  const WholeJob& job_;
  WholeShared& shared_;
  cooperative_groups::grid_group all_;
  bool leads_;
};

__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    fit_whole(const __grid_constant__ WholeJob job) {
  __shared__ WholeShared shared;
  WholeFit(job, shared).run();
}

struct SigmaJob {
  SplineImage image;
  PosePixels pixels;
  WholeMemory memory;
  pose::Warp warp;
  double gain, offset;
  int stride, count;  // groups from one that counts to the next; pixels of those
  FittedPixel* fitted;
  double* slopes;
};

/// Pixels of some groups after a fit, and sums of all weights.
__global__ void __launch_bounds__(threads) fitted_pixels(const __grid_constant__ SigmaJob job) {
  constexpr double step = 0.25;  // px: differences over longer distances smooth fine textures
  constexpr float half = 1 / (2 * static_cast<float>(step));
  const PosePixels& pixels = job.pixels;
  const auto gain = static_cast<float>(job.gain), offset = static_cast<float>(job.offset), one = 1 / gain;
  const auto left = shifted(job.image, job.warp, -step, 0), right = shifted(job.image, job.warp, step, 0);
  const auto above = shifted(job.image, job.warp, 0, -step), below = shifted(job.image, job.warp, 0, step);
  for_each_task(job.count, threads, threadIdx.x, [&](std::int64_t n) {
    constexpr int group = FittedPixel::kGroup;
    const auto k = static_cast<int>(n / group * job.stride * group + n % group);
    const float xi = pixels.xi[k], eta = pixels.eta[k], t = pixels.t[k], w = job.memory.weights[k];
    job.fitted[n] = {xi,
                     eta,
                     t,
                     pixels.tx[k],
                     pixels.ty[k],
                     half * (right.clamped(xi, eta) - left.clamped(xi, eta)) * one,
                     half * (below.clamped(xi, eta) - above.clamped(xi, eta)) * one,
                     w == 0 ? 0.0f : (job.memory.values[k] - offset) * one - t,
                     w};
  });
  double weights = 0, slopes = 0;
  for_each_task(pixels.count, threads, threadIdx.x, [&](std::int64_t k) {
    const float w = job.memory.weights[k];
    if (w != 0) weights += w, slopes += pose::biweight_slope(w);
  });
  weights = warp_sum(weights), slopes = warp_sum(slopes);
  if (threadIdx.x % warp_size == 0) atomicAdd(&job.slopes[0], weights), atomicAdd(&job.slopes[1], slopes);
}

}  // namespace

std::size_t whole_fit_bytes() {
  return sizeof(Orders) + sizeof(WholeResult) +
         sizeof(double) * product_sums * resident_blocks(fit_whole, threads, 0);
}

const WholeResult* launch_whole_fit(const SplineLevel& image, const PosePixels& pixels,
                                    const pose::FitPlan& plan, const pose::Warp& start,
                                    const WholeMemory& memory, StreamHandle stream) {
  auto* result = static_cast<WholeResult*>(memory.scratch);
  auto* orders = reinterpret_cast<Orders*>(result + 1);
  WholeJob job{
      {image}, pixels, plan, start, memory.values, memory.weights, reinterpret_cast<double*>(orders + 1),
      orders,  result};
  const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(
      (pixels.count + pixels_per_block - 1) / pixels_per_block, 1, resident_blocks(fit_whole, threads, 0)));
  void* arguments[] = {&job};
  check(cudaLaunchCooperativeKernel(fit_whole, dim3(blocks), dim3(threads), arguments, 0, stream),
        "the fit of a template");
  return result;
}

void launch_fitted_pixels(const SplineLevel& image, const PosePixels& pixels, const WholeMemory& memory,
                          const WholeResult& fit, int stride, int count, FittedPixel* fitted, double* slopes,
                          StreamHandle stream) {
  fill(slopes, 0, 2 * sizeof(double), stream);
  const SigmaJob job{{image},    pixels, memory, fit.fit.warp, fit.gain,
                     fit.offset, stride, count,  fitted,       slopes};
  fitted_pixels<<<grid_size(pixels.count, pixels_per_block), threads, 0, stream>>>(job);
  check_launch("pixels of a fit");
}

}  // namespace dic::kernels

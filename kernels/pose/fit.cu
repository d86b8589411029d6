#include <dic/kernels/pose.hpp>
#include <new>

#include "common/launch.cuh"
#include "common/transposed_sum.cuh"

namespace dic::kernels {
namespace {

// One thread takes the decisions of a fit while the others wait: the more blocks a multiprocessor has, the
// better. Short lists are fitted by small blocks.
constexpr int few_threads = 64, many_threads = 128;
constexpr int short_list = 1024;                                // pixels
constexpr int blocks_of(int threads) { return 512 / threads; }  // per multiprocessor; leaves 128 registers
constexpr int bin_count = 256;                                  // of a byte
constexpr int most_medians = 2 * pose::kMedianPixels;
static_assert(PosePixels::kPadding % many_threads == 0);

/// Shared memory of a block for the fit of one candidate, without the grey values.
template <int kWarps>
struct Shared {
  double score_sums[kWarps][6];
  double product_sums[kWarps][pose::kProducts + 1];
  double products[pose::kProducts + 1];
  float residuals[most_medians];
  unsigned bins[bin_count];
  unsigned digit, rank;
  int residual_count;
  bool goes_on;
  alignas(pose::FitSteps) unsigned char steps[sizeof(pose::FitSteps)];
};

/// A warp as floats: the centre is split into pixel and fraction, so that positions keep their digits.
struct Sampler {
  PoseLevel image;
  float xx, xy, yx, yy, cx, cy;
  int whole_x, whole_y;

  __device__ Sampler(const PoseLevel& level, const pose::Warp& w)
      : image(level),
        xx(static_cast<float>(w.xx)),
        xy(static_cast<float>(w.xy)),
        yx(static_cast<float>(w.yx)),
        yy(static_cast<float>(w.yy)) {
    const double x = fmin(fmax(w.center_x, -1e6), 1e6), y = fmin(fmax(w.center_y, -1e6), 1e6);
    whole_x = static_cast<int>(floor(x)), whole_y = static_cast<int>(floor(y));
    cx = static_cast<float>(w.center_x - whole_x), cy = static_cast<float>(w.center_y - whole_y);
  }

  /// Bilinear grey value minus `origin` at template coordinates; NaN outside the image or its mask.
  __device__ float at(float xi, float eta, float origin) const {
    const float x = fmaf(xx, xi, fmaf(xy, eta, cx)), y = fmaf(yx, xi, fmaf(yy, eta, cy));
    const float nan = __int_as_float(0x7fffffff);
    if (!(x >= least(whole_x) && x <= most(image.width, whole_x) && y >= least(whole_y) &&
          y <= most(image.height, whole_y)))
      return nan;
    if (image.mask) {
      const int column = whole_x + static_cast<int>(floorf(x + 0.5f));
      const std::int64_t line = whole_y + static_cast<int>(floorf(y + 0.5f));
      if (image.mask[line * image.width + column] == 0) return nan;
    }
    return bilinear(x, y) - origin;
  }
  /// Bilinear grey value, that of the nearest place inside the image if the place is outside.
  __device__ float clamped(float xi, float eta) const {
    const float x = fmaf(xx, xi, fmaf(xy, eta, cx)), y = fmaf(yx, xi, fmaf(yy, eta, cy));
    return bilinear(fminf(fmaxf(x, least(whole_x)), most(image.width, whole_x)),
                    fminf(fmaxf(y, least(whole_y)), most(image.height, whole_y)));
  }

 private:
  __device__ static float least(int whole) { return static_cast<float>(-whole); }
  __device__ static float most(int size, int whole) { return static_cast<float>(size - 1 - whole); }
  __device__ float bilinear(float x, float y) const {
    const float x0 = fminf(floorf(x), most(image.width, whole_x) - 1),
                y0 = fminf(floorf(y), most(image.height, whole_y) - 1);
    const float fx = x - x0, fy = y - y0;
    const float* p = image.values + static_cast<std::int64_t>(whole_y + static_cast<int>(y0)) * image.width +
                     whole_x + static_cast<int>(x0);
    const float a = p[0], b = p[1], c = p[image.width], d = p[image.width + 1];
    const float top = fmaf(fx, b - a, a), bottom = fmaf(fx, d - c, c);
    return fmaf(fy, bottom - top, top);
  }
};

__device__ Sampler shifted(const PoseLevel& image, pose::Warp w, double xi, double eta) {
  w.center_x += w.xx * xi + w.xy * eta;
  w.center_y += w.yx * xi + w.yy * eta;
  return Sampler(image, w);
}

/// Sums of a few floats over the block, as doubles, in `sums` of every thread.
template <int kWarps, int kCount>
__device__ void block_sums(const float (&values)[kCount], double (&of_warps)[kWarps][kCount],
                           double (&sums)[kCount]) {
  using Transposed = TransposedSum<kCount>;
  const float sum = Transposed::sum_over_warp(values);
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int k = 0; k < kCount; ++k)
    if (lane == Transposed::lane_of(k)) of_warps[threadIdx.x / warp_size][k] = sum;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    sums[k] = 0;
    for (int w = 0; w < kWarps; ++w) sums[k] += of_warps[w][k];
  }
  __syncthreads();
}

/// One block's fit.
template <int kThreads>
class BlockFit {
  static constexpr int threads = kThreads, warps = kThreads / warp_size;

 public:
  using Shared = kernels::Shared<warps>;

  __device__ BlockFit(const PoseLevel& image, const PosePixels& pixels, const PoseTask& task, Shared& shared,
                      float* values)
      : image_(image), pixels_(pixels), task_(task), shared_(shared), values_(values) {}

  __device__ void run(PoseResult& result) {
    const float origin = origin_at(task_.start);
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
      const float limit = steps->is_robust() ? limit_of(task_.plan.is_near, gain, offset) : 0;
      sum_products(static_cast<float>(gain), static_cast<float>(offset), limit);
      if (threadIdx.x == 0) steps->take_products(shared_.products, shared_.products[pose::kProducts]);
      __syncthreads();
    }
    const pose::Fit fit = steps->result();
    double structure = 0;
    if (task_.with_structure && fit.valid) structure = gradient_correlation(fit, origin);
    if (threadIdx.x == 0) result = {fit, structure};
  }

 private:
  /// Mean grey value of the first pixels: values relative to it keep the digits of a small contrast.
  __device__ float origin_at(const pose::Warp& warp) {
    const Sampler sampler(image_, warp);
    float parts[6] = {};
    for (int k = threadIdx.x; k < PosePixels::kPadding; k += threads) {
      const float v = sampler.at(pixels_.xi[k], pixels_.eta[k], 0);
      if (v == v) parts[0] += v, parts[1] += 1;
    }
    double sums[6];
    block_sums(parts, shared_.score_sums, sums);
    return sums[1] > 0 ? static_cast<float>(round(sums[0] / sums[1])) : 0.0f;
  }

  __device__ pose::ScoreSums sample(const pose::Warp& warp, float origin) {
    const Sampler sampler(image_, warp);
    float parts[6] = {};
    for (int k = threadIdx.x; k < pixels_.padded; k += threads) {
      float v = __int_as_float(0x7fffffff);
      if (k < pixels_.count) v = sampler.at(pixels_.xi[k], pixels_.eta[k], origin);
      values_[k] = v;
      if (v != v) continue;
      const float t = pixels_.t[k];
      parts[0] += 1, parts[1] += t, parts[2] = fmaf(t, t, parts[2]);
      parts[3] += v, parts[4] = fmaf(v, v, parts[4]), parts[5] = fmaf(t, v, parts[5]);
    }
    double sums[6];
    block_sums(parts, shared_.score_sums, sums);
    return {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]};
  }

  /// Residual from which pixels do not count.
  __device__ float limit_of(bool is_near, double gain, double offset) {
    if (threadIdx.x == 0) shared_.residual_count = 0;
    __syncthreads();
    const int stride = pose::median_stride(pixels_.count);
    const auto g = static_cast<float>(gain), o = static_cast<float>(offset);
    for (int k = threadIdx.x * stride; k < pixels_.count; k += threads * stride) {
      const float v = values_[k];
      if (v != v) continue;
      shared_.residuals[atomicAdd(&shared_.residual_count, 1)] = fabsf(v - g * pixels_.t[k] - o);
    }
    __syncthreads();
    const float middle = shared_.residual_count > 0 ? median() : 0.0f;
    return pose::residual_limit(is_near, middle, pixels_.squares, gain, pixels_.count);
  }

  /// The middle one of the residuals, which are not negative, so that their bits are ordered as they are.
  __device__ float median() {
    const int count = shared_.residual_count;
    unsigned known = 0;
    if (threadIdx.x == 0) shared_.rank = count / 2;
    for (int shift = 24; shift >= 0; shift -= 8) {
      for (int k = threadIdx.x; k < bin_count; k += threads) shared_.bins[k] = 0;
      __syncthreads();
      const unsigned rank = shared_.rank;
      for (int k = threadIdx.x; k < count; k += threads) {
        const unsigned bits = __float_as_uint(shared_.residuals[k]);
        if (shift == 24 || bits >> (shift + 8) == known) atomicAdd(&shared_.bins[bits >> shift & 255], 1u);
      }
      __syncthreads();
      if (threadIdx.x < warp_size) find_digit(rank);
      __syncthreads();
      known = known << 8 | shared_.digit;
    }
    return __uint_as_float(known);
  }
  /// The bin in which the element of a rank is, and its rank there. By one warp.
  __device__ void find_digit(unsigned rank) {
    constexpr int per_lane = bin_count / warp_size;
    const int lane = threadIdx.x;
    unsigned own = 0;
    for (int k = 0; k < per_lane; ++k) own += shared_.bins[lane * per_lane + k];
    unsigned before = own;
    for (int offset = 1; offset < warp_size; offset *= 2) {
      const unsigned other = __shfl_up_sync(all_lanes, before, offset);
      if (lane >= offset) before += other;
    }
    before -= own;
    if (rank < before || rank >= before + own) return;
    for (int k = 0; k < per_lane; ++k) {
      const unsigned here = shared_.bins[lane * per_lane + k];
      if (rank < before + here) {
        shared_.digit = lane * per_lane + k;
        shared_.rank = rank - before;
        return;
      }
      before += here;
    }
  }

  /// Weight of a pixel inside the image; limit 0: all count.
  __device__ static float weight_of(float residual, float limit) {
    return limit > 0 ? pose::biweight(residual / limit) : 1.0f;
  }

  __device__ void sum_products(float gain, float offset, float limit) {
    constexpr int count = pose::kProducts + 1, first = 32, rest = count - first;
    float sums[count] = {};  // the last one is the number of pixels that fit
    for (int k = threadIdx.x; k < pixels_.count; k += threads) {
      const float v = values_[k];
      if (v != v) continue;
      const float xi = pixels_.xi[k], eta = pixels_.eta[k], t = pixels_.t[k], tx = pixels_.tx[k],
                  ty = pixels_.ty[k];
      const float w = weight_of(v - gain * t - offset, limit);
      const float terms[pose::kTerms] = {tx, ty, xi * tx, eta * tx, xi * ty, eta * ty, t, 1.0f, v};
      int at = 0;
#pragma unroll
      for (int i = 0; i < pose::kTerms; ++i) {
        const float weighted = w * terms[i];
#pragma unroll
        for (int j = i; j < pose::kTerms; ++j, ++at) sums[at] = fmaf(weighted, terms[j], sums[at]);
      }
      sums[count - 1] += w > pose::kFits;
    }
    float head[first], tail[rest];
#pragma unroll
    for (int k = 0; k < first; ++k) head[k] = sums[k];
#pragma unroll
    for (int k = 0; k < rest; ++k) tail[k] = sums[first + k];
    const float of_head = TransposedSum<first>::sum_over_warp(head);
    const float of_tail = TransposedSum<rest>::sum_over_warp(tail);
    const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
#pragma unroll
    for (int k = 0; k < first; ++k)
      if (lane == TransposedSum<first>::lane_of(k)) shared_.product_sums[warp][k] = of_head;
#pragma unroll
    for (int k = 0; k < rest; ++k)
      if (lane == TransposedSum<rest>::lane_of(k)) shared_.product_sums[warp][first + k] = of_tail;
    __syncthreads();
    if (threadIdx.x < count) {
      double sum = 0;
      for (int w = 0; w < warps; ++w) sum += shared_.product_sums[w][threadIdx.x];
      shared_.products[threadIdx.x] = sum;
    }
    __syncthreads();
  }

  /// Correlation of the gradients of template and image over pixels that fit.
  __device__ double gradient_correlation(const pose::Fit& fit, float origin) {
    sample(fit.warp, origin);
    const double gain = fit.gain, offset = fit.offset + fit.gain * pixels_.mean - origin;
    const float limit = limit_of(false, gain, offset);
    const auto g = static_cast<float>(gain), o = static_cast<float>(offset);
    constexpr double half = 0.5;
    const Sampler left = shifted(image_, fit.warp, -half, 0), right = shifted(image_, fit.warp, half, 0);
    const Sampler above = shifted(image_, fit.warp, 0, -half), below = shifted(image_, fit.warp, 0, half);
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
  const PoseLevel& image_;
  const PosePixels pixels_;
  const PoseTask& task_;
  Shared& shared_;
  float* values_;
};

template <int kThreads>
__global__ void __launch_bounds__(kThreads, blocks_of(kThreads))
    fit_poses(const __grid_constant__ PoseLevel image, const PosePixels* pixels, const PoseTask* tasks,
              PoseResult* results) {
  __shared__ typename BlockFit<kThreads>::Shared shared;
  extern __shared__ float values[];
  const PoseTask& task = tasks[blockIdx.x];
  BlockFit<kThreads>(image, pixels[task.pixels], task, shared, values).run(results[blockIdx.x]);
}

template <int kThreads>
void launch_fits(const PoseLevel& image, const PosePixels* pixels, int most_padded, const PoseTask* tasks,
                 int count, PoseResult* results, StreamHandle stream) {
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(most_padded);
  check(cudaFuncSetAttribute(fit_poses<kThreads>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory of the fits of poses");
  fit_poses<kThreads><<<grid_size(count, 1), kThreads, bytes, stream>>>(image, pixels, tasks, results);
  check_launch("fits of poses");
}

}  // namespace

int most_pose_pixels() { return 8192; }

void launch_pose_fits(const PoseLevel& image, const PosePixels* pixels, int most_padded,
                      const PoseTask* tasks, int count, PoseResult* results, StreamHandle stream) {
  if (count == 0) return;
  if (most_padded <= short_list)
    launch_fits<few_threads>(image, pixels, most_padded, tasks, count, results, stream);
  else
    launch_fits<many_threads>(image, pixels, most_padded, tasks, count, results, stream);
}

}  // namespace dic::kernels

// Recursive B-spline prefilter and the spline's gradient, vectors across independent lines: rows are filtered
// in transposed blocks, columns in strips.

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/reflect.hpp>
#include <vector>

#include "core/simd_targets.hpp"
#include "refine/image.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "refine/spline_filter.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// kLanes lines are filtered together: element k of line l is at line[k * kLanes + l].
constexpr int kLanes = 16;

struct Pole {
  float z;
  int horizon;  ///< z^horizon < 1e-8: terms that the start of the causal filter needs
};
constexpr Pole kCubicPole{-0.26794919243112270647f, 14};
constexpr Pole kQuinticPoles[] = {{-0.43057534709997379430f, 22}, {-0.04309628820326465382f, 6}};

float continued(const float* line, int n, int k) {
  return point_reflected([line](int i) { return line[i * kLanes]; }, n, k);
}

/// One pole of the inverse filter, causal then anti-causal, without its gain (1 - z)(1 - 1/z). Both ends keep
/// their value (times that gain): what a point reflection adds on one side it subtracts on the other.
HWY_ATTR void filter_pole(float* lines, int n, Pole pole) {
  const hn::CappedTag<float, kLanes> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const float gain = (1 - pole.z) * (1 - 1 / pole.z);
  HWY_ALIGN float start[kLanes], end[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    float power = 1;
    start[l] = 0;
    for (int k = 0; k <= pole.horizon; ++k, power *= pole.z) start[l] += power * continued(lines + l, n, -k);
    end[l] = lines[(n - 1) * kLanes + l] / gain;
  }
  for (int l = 0; l < kLanes; l += lanes) {
    float* line = lines + l;
    const auto z = hn::Set(d, pole.z);
    auto previous = hn::Load(d, start + l);
    hn::Store(previous, d, line);
    for (int k = 1; k < n; ++k) {
      previous = hn::MulAdd(z, previous, hn::Load(d, line + k * kLanes));
      hn::Store(previous, d, line + k * kLanes);
    }
    previous = hn::Load(d, end + l);
    hn::Store(previous, d, line + (n - 1) * kLanes);
    for (int k = n - 2; k >= 0; --k) {
      previous = hn::Mul(z, hn::Sub(previous, hn::Load(d, line + k * kLanes)));
      hn::Store(previous, d, line + k * kLanes);
    }
  }
}

HWY_ATTR void prefilter(float* lines, int n, Interpolation interpolation) {
  if (interpolation == Interpolation::cubic) return filter_pole(lines, n, kCubicPole);
  for (const Pole& pole : kQuinticPoles) filter_pole(lines, n, pole);
}

/// Derivative of the spline with the (gainless) coefficients `lines` at its knots.
HWY_ATTR void differentiate(const float* lines, int n, Interpolation interpolation, float* out) {
  // 6 * {-1/2, 0, 1/2} and 120 * {-1/24, -10/24, 0, 10/24, 1/24}: gain times the B-spline's derivative.
  const bool cubic = interpolation == Interpolation::cubic;
  const float near = cubic ? 3.0f : 50.0f, far = cubic ? 0.0f : 5.0f;
  float outside[4][kLanes];
  const auto tap = [&](int k, float* buffer) -> const float* {
    if (k >= 0 && k < n) return lines + k * kLanes;
    for (int l = 0; l < kLanes; ++l) buffer[l] = continued(lines + l, n, k);
    return buffer;
  };
  for (int k = 0; k < n; ++k) {
    const float *m2 = tap(k - 2, outside[0]), *m1 = tap(k - 1, outside[1]);
    const float *p1 = tap(k + 1, outside[2]), *p2 = tap(k + 2, outside[3]);
    for (int l = 0; l < kLanes; ++l) out[k * kLanes + l] = near * (p1[l] - m1[l]) + far * (p2[l] - m2[l]);
  }
}

/// Filters (and differentiates) lines in place in scratch memory: [2 * n * kLanes] floats, aligned.
HWY_ATTR float* run_lines(float* scratch, int n, Interpolation interpolation, bool derivative) {
  prefilter(scratch, n, interpolation);
  if (!derivative) return scratch;
  float* out = scratch + static_cast<std::ptrdiff_t>(n) * kLanes;
  differentiate(scratch, n, interpolation, out);
  return out;
}

HWY_ATTR void filter_rows(const float* const* rows, float* const* out, int count, int n,
                          Interpolation interpolation, bool derivative, float* scratch) {
  for (int l = 0; l < count; ++l)
    for (int k = 0; k < n; ++k) scratch[k * kLanes + l] = rows[l][k];
  const float* result = run_lines(scratch, n, interpolation, derivative);
  for (int l = 0; l < count; ++l)
    for (int k = 0; k < n; ++k) out[l][k] = result[k * kLanes + l];
}

HWY_ATTR void filter_columns(const float* in, std::ptrdiff_t in_stride, float* out, std::ptrdiff_t out_stride,
                             int count, int n, Interpolation interpolation, bool derivative, float* scratch) {
  for (int k = 0; k < n; ++k) std::copy_n(in + k * in_stride, count, scratch + k * kLanes);
  const float* result = run_lines(scratch, n, interpolation, derivative);
  for (int k = 0; k < n; ++k) std::copy_n(result + k * kLanes, count, out + k * out_stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

namespace dic {
namespace {

HWY_EXPORT(filter_rows);
HWY_EXPORT(filter_columns);

constexpr int kBlock = 16;  // lines filtered together; kLanes of the kernels

class Scratch {
 public:
  Scratch(const ThreadPool& pool, int n) {
    for (int i = 0; i < pool.size(); ++i) {
      memory_.push_back(hwy::AllocateAligned<float>(static_cast<std::size_t>(2) * n * kBlock));
      std::fill_n(memory_.back().get(), static_cast<std::size_t>(2) * n * kBlock, 0.0f);
    }
  }
  float* of(int worker) { return memory_[worker].get(); }

 private:
  std::vector<hwy::AlignedFreeUniquePtr<float[]>> memory_;
};

/// row(y, buffer) returns line y as floats, converted into `buffer` where it has to be.
template <typename RowOf>
void along_rows(int width, int height, const RowOf& row, PaddedImage& out, Interpolation interpolation,
                bool derivative, ThreadPool& pool) {
  Scratch scratch(pool, width);
  std::vector<std::vector<float>> converted(pool.size(),
                                            std::vector<float>(static_cast<std::size_t>(width) * kBlock));
  pool.parallel_for(height, kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    const int count = static_cast<int>(end - begin);
    std::array<const float*, kBlock> in{};
    std::array<float*, kBlock> to{};
    for (int l = 0; l < count; ++l) {
      in[l] =
          row(static_cast<int>(begin) + l, converted[worker].data() + static_cast<std::ptrdiff_t>(l) * width);
      to[l] = out.at(0, static_cast<int>(begin) + l);
    }
    HWY_DYNAMIC_DISPATCH(filter_rows)
    (in.data(), to.data(), count, width, interpolation, derivative, scratch.of(worker));
  });
}

void along_columns(const PaddedImage& in, PaddedImage& out, Interpolation interpolation, bool derivative,
                   ThreadPool& pool) {
  Scratch scratch(pool, in.height());
  pool.parallel_for(in.width(), kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    const int x = static_cast<int>(begin);
    HWY_DYNAMIC_DISPATCH(filter_columns)
    (in.at(x, 0), in.stride(), out.at(x, 0), out.stride(), static_cast<int>(end - begin), in.height(),
     interpolation, derivative, scratch.of(worker));
  });
}

void fit(PaddedImage& image, int width, int height) {
  if (image.width() != width || image.height() != height) image = PaddedImage(width, height);
}

}  // namespace

void spline_coefficients(ImageView image, Interpolation interpolation, PaddedImage& out, ThreadPool& pool) {
  fit(out, image.width, image.height);
  visit_scalar(image.type, [&](auto element) {
    const auto row = [&](int y, float* buffer) -> const float* {
      const auto* values = image.row<decltype(element)>(y);
      std::transform(values, values + image.width, buffer, [](auto v) { return static_cast<float>(v); });
      return buffer;
    };
    along_rows(image.width, image.height, row, out, interpolation, false, pool);
  });
  along_columns(out, out, interpolation, false, pool);
  out.reflect_margin();
}

void spline_gradient(const PaddedImage& image, Interpolation interpolation, PaddedImage& dx, PaddedImage& dy,
                     ThreadPool& pool) {
  fit(dx, image.width(), image.height());
  fit(dy, image.width(), image.height());
  const auto row = [&](int y, float*) { return image.at(0, y); };
  along_rows(image.width(), image.height(), row, dx, interpolation, true, pool);
  along_columns(image, dy, interpolation, true, pool);
}

}  // namespace dic
#endif

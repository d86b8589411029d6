// Recursive B-spline prefilter and gradient of the spline. Vectors run across independent lines: rows are
// filtered in transposed blocks, columns in strips.

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/reflect.hpp>
#include <span>
#include <vector>

#include "core/simd_targets.hpp"
#include "refine/column_band.hpp"
#include "refine/image.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "refine/spline_filter.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::refine {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Number of lines that are filtered together; element k of line l is at lines[k * kLanes + l].
constexpr int kLanes = 16;

struct Pole {
  float z;
  int horizon;  ///< terms that the start of the causal filter needs: z^horizon < 1e-8
};
constexpr Pole kCubicPole{-0.26794919243112270647f, 14};
constexpr Pole kQuinticPoles[] = {{-0.43057534709997379430f, 22}, {-0.04309628820326465382f, 6}};

std::span<const Pole> poles(Interpolation interpolation) {
  if (interpolation == Interpolation::cubic) return {&kCubicPole, 1};
  return kQuinticPoles;
}

float reflected_element(const float* line, int n, int k) {
  return point_reflected([line](int i) { return line[i * kLanes]; }, n, k);
}

/// Applies the causal half of a pole of the inverse filter, without its gain. previous: the filtered row
/// above the first one; receives the last one. With is_start, the reflected lines give the start.
HWY_ATTR void filter_down(float* lines, int n, Pole pole, bool is_start, float* previous) {
  const hn::CappedTag<float, kLanes> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int l = 0; is_start && l < kLanes; ++l) {
    float power = 1;
    previous[l] = 0;
    for (int k = 0; k <= pole.horizon; ++k, power *= pole.z)
      previous[l] += power * reflected_element(lines + l, n, -k);
  }
  for (int l = 0; l < kLanes; l += lanes) {
    float* line = lines + l;
    const auto z = hn::Set(d, pole.z);
    auto above = hn::Load(d, previous + l);
    if (is_start) hn::Store(above, d, line);
    for (int k = is_start ? 1 : 0; k < n; ++k) {
      above = hn::MulAdd(z, above, hn::Load(d, line + k * kLanes));
      hn::Store(above, d, line + k * kLanes);
    }
    hn::Store(above, d, previous + l);
  }
}

/// Applies the anti-causal half. previous: the filtered row below the last one, or with is_end the filtered
/// last row itself; receives the first one.
HWY_ATTR void filter_up(float* lines, int n, Pole pole, bool is_end, float* previous) {
  const hn::CappedTag<float, kLanes> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int l = 0; l < kLanes; l += lanes) {
    float* line = lines + l;
    const auto z = hn::Set(d, pole.z);
    auto below = hn::Load(d, previous + l);
    if (is_end) hn::Store(below, d, line + (n - 1) * kLanes);
    for (int k = n - (is_end ? 2 : 1); k >= 0; --k) {
      below = hn::Mul(z, hn::Sub(below, hn::Load(d, line + k * kLanes)));
      hn::Store(below, d, line + k * kLanes);
    }
    hn::Store(below, d, previous + l);
  }
}

/// Computes the last row of lines filtered by a pole. Both ends of a line keep their value (divided by the
/// gain (1 - z)(1 - 1/z), which the filter omits): what a point reflection adds on one side it subtracts on
/// the other.
void last_row(const float* lines, int n, Pole pole, float* out) {
  const float gain = (1 - pole.z) * (1 - 1 / pole.z);
  for (int l = 0; l < kLanes; ++l) out[l] = lines[(n - 1) * kLanes + l] / gain;
}

HWY_ATTR void filter_pole(float* lines, int n, Pole pole) {
  HWY_ALIGN float above[kLanes], below[kLanes];
  last_row(lines, n, pole, below);
  filter_down(lines, n, pole, true, above);
  filter_up(lines, n, pole, true, below);
}

HWY_ATTR void prefilter(float* lines, int n, Interpolation interpolation) {
  for (const Pole& pole : poles(interpolation)) filter_pole(lines, n, pole);
}

/// Computes the derivative of the spline with the (gainless) coefficients `lines` at its knots. before,
/// after: number of rows in memory around these n; the lines end there if it is less than two.
HWY_ATTR void differentiate(const float* lines, int n, int before, int after, Interpolation interpolation,
                            float* out) {
  // 6 * {-1/2, 0, 1/2} and 120 * {-1/24, -10/24, 0, 10/24, 1/24}: gain times the B-spline's derivative.
  const bool cubic = interpolation == Interpolation::cubic;
  const float near = cubic ? 3.0f : 50.0f, far = cubic ? 0.0f : 5.0f;
  float outside[4][kLanes];
  const auto tap = [&](int k, float* buffer) -> const float* {
    if (k >= -before && k < n + after) return lines + k * kLanes;
    for (int l = 0; l < kLanes; ++l)
      buffer[l] = reflected_element(lines - before * kLanes + l, before + n + after, before + k);
    return buffer;
  };
  for (int k = 0; k < n; ++k) {
    const float *m2 = tap(k - 2, outside[0]), *m1 = tap(k - 1, outside[1]);
    const float *p1 = tap(k + 1, outside[2]), *p2 = tap(k + 2, outside[3]);
    for (int l = 0; l < kLanes; ++l) out[k * kLanes + l] = near * (p1[l] - m1[l]) + far * (p2[l] - m2[l]);
  }
}

/// Filters (and differentiates) lines in scratch memory, [2 * n * kLanes] floats, aligned. Returns the
/// result, which is in the same memory.
HWY_ATTR float* run_lines(float* scratch, int n, const LineFilter& filter) {
  prefilter(scratch, n, filter.interpolation);
  if (!filter.derivative) return scratch;
  float* out = scratch + static_cast<std::ptrdiff_t>(n) * kLanes;
  differentiate(scratch, n, 0, 0, filter.interpolation, out);
  return out;
}

HWY_ATTR void filter_rows(const float* const* rows, float* const* out, int count, int n,
                          const LineFilter& filter, float* scratch) {
  for (int l = 0; l < count; ++l)
    for (int k = 0; k < n; ++k) scratch[k * kLanes + l] = rows[l][k];
  const float* result = run_lines(scratch, n, filter);
  for (int l = 0; l < count; ++l)
    for (int k = 0; k < n; ++k) out[l][k] = result[k * kLanes + l];
}

/// Copies the first `count` floats of n rows.
void copy_rows(const InputRows& from, const OutputRows& to, int count, int n) {
  for (int k = 0; k < n; ++k) std::copy_n(from.first + k * from.stride, count, to.first + k * to.stride);
}

HWY_ATTR void filter_columns(const InputRows& in, const OutputRows& out, int count, int n,
                             const LineFilter& filter, float* scratch) {
  copy_rows(in, {scratch, kLanes}, count, n);
  copy_rows({run_lines(scratch, n, filter), kLanes}, out, count, n);
}

/// Applies a pole's causal half to a band. ends: receives last_row() in the last band.
HWY_ATTR void filter_band_down(const ColumnBand& band, const InputRows& in, int pole, float* previous,
                               float* ends, float* scratch) {
  copy_rows(in, {scratch, kLanes}, band.columns, band.rows);
  const Pole& filter = poles(band.interpolation)[pole];
  if (band.rows_below == 0) last_row(scratch, band.rows, filter, ends);
  filter_down(scratch, band.rows, filter, band.is_first, previous);
  copy_rows({scratch, kLanes}, {band.out, band.stride}, band.columns, band.rows);
}

HWY_ATTR void filter_band_up(const ColumnBand& band, int pole, float* previous, float* scratch) {
  copy_rows({band.out, band.stride}, {scratch, kLanes}, band.columns, band.rows);
  filter_up(scratch, band.rows, poles(band.interpolation)[pole], band.rows_below == 0, previous);
  copy_rows({scratch, kLanes}, {band.out, band.stride}, band.columns, band.rows);
}

/// Differentiates a band. above: coefficients of the two rows above it, which the image no longer has;
/// receives the last two rows of this band.
HWY_ATTR void differentiate_band(const ColumnBand& band, float* above, float* scratch) {
  const int before = band.is_first ? 0 : 2, after = std::min(2, band.rows_below);
  float* const lines = scratch + before * kLanes;
  std::copy_n(above, before * kLanes, scratch);
  copy_rows({band.out, band.stride}, {lines, kLanes}, band.columns, band.rows + after);
  float* const result = lines + static_cast<std::ptrdiff_t>(band.rows + after) * kLanes;
  differentiate(lines, band.rows, before, after, band.interpolation, result);
  if (band.rows_below > 0) std::copy_n(lines + (band.rows - 2) * kLanes, 2 * kLanes, above);
  copy_rows({result, kLanes}, {band.out, band.stride}, band.columns, band.rows);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dic::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

namespace dic::refine {
namespace {

HWY_EXPORT(filter_rows);
HWY_EXPORT(filter_columns);
HWY_EXPORT(filter_band_down);
HWY_EXPORT(filter_band_up);
HWY_EXPORT(differentiate_band);

constexpr int kBlock = 16;  // number of lines filtered together, equal to kLanes of the kernels
/// Number of bands up to which images are filtered in whole columns, which reads and writes them only once.
constexpr std::size_t kLargeImage = 8;

class Scratch {
 public:
  Scratch(const core::ThreadPool& pool, int n) {
    for (int i = 0; i < pool.size(); ++i) {
      memory_.push_back(hwy::AllocateAligned<float>(static_cast<std::size_t>(2) * n * kBlock));
      std::fill_n(memory_.back().get(), static_cast<std::size_t>(2) * n * kBlock, 0.0f);
    }
  }
  float* of(int worker) { return memory_[worker].get(); }

 private:
  std::vector<hwy::AlignedFreeUniquePtr<float[]>> memory_;
};

/// Filters along rows. row(y, buffer) returns line y as floats, converted into `buffer` if necessary.
template <typename RowOf>
void along_rows(int width, int height, const RowOf& row, PaddedImage& out, const LineFilter& filter,
                core::ThreadPool& pool) {
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
    (in.data(), to.data(), count, width, filter, scratch.of(worker));
  });
}

void along_whole_columns(const PaddedImage& in, PaddedImage& out, const LineFilter& filter,
                         core::ThreadPool& pool) {
  Scratch scratch(pool, in.height());
  pool.parallel_for(in.width(), kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    const int x = static_cast<int>(begin);
    HWY_DYNAMIC_DISPATCH(filter_columns)
    ({in.at(x, 0), in.stride()}, {out.at(x, 0), out.stride()}, static_cast<int>(end - begin), in.height(),
     filter, scratch.of(worker));
  });
}

/// Filters the columns of a large image band by band, down and up again for each pole. Whole columns would
/// touch a page of memory for each row, and so load the whole image 64 times.
class BandedColumns {
 public:
  BandedColumns(const PaddedImage& in, PaddedImage& out, int rows, Interpolation interpolation,
                core::ThreadPool& pool)
      : in_(in),
        out_(out),
        rows_(rows),
        interpolation_(interpolation),
        pool_(pool),
        scratch_(pool, rows + 4) {
    const std::size_t blocks = (in.width() + kBlock - 1) / kBlock;
    state_ = hwy::AllocateAligned<float>(2 * kBlock * blocks);
    ends_ = hwy::AllocateAligned<float>(kBlock * blocks);
    std::fill_n(state_.get(), 2 * kBlock * blocks, 0.0f);
  }

  void filter() {
    const int poles = interpolation_ == Interpolation::cubic ? 1 : 2;
    for (int pole = 0; pole < poles; ++pole) {
      for (int band = 0; band < bands(); ++band) down(band, pole);
      std::swap(state_, ends_);  // the way up begins with the last rows
      for (int band = bands() - 1; band >= 0; --band) up(band, pole);
      std::swap(state_, ends_);
    }
  }
  void differentiate() {
    for (int band = 0; band < bands(); ++band)
      for_each_block(band, [&](const ColumnBand& part, int x, float* scratch) {
        HWY_DYNAMIC_DISPATCH(differentiate_band)(part, state_.get() + 2 * x, scratch);
      });
  }

 private:
  int bands() const { return (in_.height() + rows_ - 1) / rows_; }

  void down(int band, int pole) {
    const PaddedImage& from = pole == 0 ? in_ : out_;
    for_each_block(band, [&](const ColumnBand& part, int x, float* scratch) {
      HWY_DYNAMIC_DISPATCH(filter_band_down)
      (part, {from.at(x, band * rows_), from.stride()}, pole, state_.get() + x, ends_.get() + x, scratch);
    });
  }
  void up(int band, int pole) {
    for_each_block(band, [&](const ColumnBand& part, int x, float* scratch) {
      HWY_DYNAMIC_DISPATCH(filter_band_up)(part, pole, state_.get() + x, scratch);
    });
  }

  template <typename Body>
  void for_each_block(int band, const Body& body) {
    const int first = band * rows_, rows = std::min(rows_, in_.height() - first);
    pool_.parallel_for(in_.width(), kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
      const int x = static_cast<int>(begin);
      body({.out = out_.at(x, first),
            .stride = out_.stride(),
            .columns = static_cast<int>(end - begin),
            .rows = rows,
            .is_first = band == 0,
            .rows_below = in_.height() - first - rows,
            .interpolation = interpolation_},
           x, scratch_.of(worker));
    });
  }

  const PaddedImage& in_;
  PaddedImage& out_;
  const int rows_;
  const Interpolation interpolation_;
  core::ThreadPool& pool_;
  Scratch scratch_;
  hwy::AlignedFreeUniquePtr<float[]> state_, ends_;  ///< rows of all columns that the next band needs
};

void along_columns(const PaddedImage& in, PaddedImage& out, const LineFilter& filter, core::ThreadPool& pool,
                   std::size_t band_bytes) {
  constexpr std::size_t least = 64;  // rows; more than a pole's horizon
  const std::size_t row_bytes = in.stride() * sizeof(float), rows = std::max(least, band_bytes / row_bytes);
  const bool is_large = row_bytes * in.height() > kLargeImage * band_bytes;
  if (!is_large || std::cmp_greater_equal(rows, in.height()))
    return along_whole_columns(in, out, filter, pool);
  BandedColumns columns(in, out, static_cast<int>(rows), filter.interpolation, pool);
  columns.filter();
  if (filter.derivative) columns.differentiate();
}

void fit(PaddedImage& image, int width, int height, core::ThreadPool& pool) {
  if (image.width() != width || image.height() != height) image = PaddedImage(width, height, pool);
}

}  // namespace

void spline_coefficients(ImageView image, Interpolation interpolation, PaddedImage& out,
                         core::ThreadPool& pool, std::size_t band_bytes) {
  fit(out, image.width, image.height, pool);
  visit_scalar(image.type, [&](auto element) {
    const auto row = [&](int y, float* buffer) -> const float* {
      const auto* values = image.row<decltype(element)>(y);
      std::transform(values, values + image.width, buffer, [](auto v) { return static_cast<float>(v); });
      return buffer;
    };
    along_rows(image.width, image.height, row, out, {interpolation}, pool);
  });
  along_columns(out, out, {interpolation}, pool, band_bytes);
  out.reflect_margin();
}

void spline_gradient(const PaddedImage& image, Interpolation interpolation, PaddedImage& dx, PaddedImage& dy,
                     core::ThreadPool& pool, std::size_t band_bytes) {
  fit(dx, image.width(), image.height(), pool);
  fit(dy, image.width(), image.height(), pool);
  const auto row = [&](int y, float*) { return image.at(0, y); };
  const LineFilter filter{.interpolation = interpolation, .derivative = true};
  along_rows(image.width(), image.height(), row, dx, filter, pool);
  along_columns(image, dy, filter, pool, band_bytes);
}

}  // namespace dic::refine
#endif

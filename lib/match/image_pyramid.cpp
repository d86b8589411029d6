#include "match/image_pyramid.hpp"

#include <algorithm>

namespace dic::match {
namespace {

constexpr int kPadded = 128;  ///< columns beside the margin, which whole vectors reach

/// Sums of a row of a level.
struct RowSums {
  double values = 0, squares = 0;
  bool has_mask = false;
};

/// Fills one row of an image whose mean is known.
RowSums fill_row(const FloatImage& from, const FloatImage* mask, int y, CoarseImage& image) {
  RowSums all;
  const std::ptrdiff_t first = image.place(0, y);
  double sum = 0, squares = 0, number = 0;
  for (int x = 0; x < from.width; ++x) {
    const bool counts = !mask || mask->row(y)[x] != 0;
    all.has_mask |= !counts;
    const float v = counts ? from.row(y)[x] - static_cast<float>(image.mean) : 0.0F;
    image.values[first + x] = v;
    image.squares[first + x] = v * v;
    image.counts[first + x] = counts ? 1.0F : 0.0F;
    image.sum[first + x] = static_cast<float>(sum);
    image.sum_squares[first + x] = static_cast<float>(squares);
    image.number[first + x] = static_cast<float>(number);
    number += counts;
    sum += v, squares += static_cast<double>(v) * v;
  }
  const std::ptrdiff_t behind = first + from.width, count = image.margin + kPadded;
  std::fill_n(image.sum.begin() + behind, count, static_cast<float>(sum));
  std::fill_n(image.sum_squares.begin() + behind, count, static_cast<float>(squares));
  std::fill_n(image.number.begin() + behind, count, static_cast<float>(number));
  all.values = sum, all.squares = squares;
  return all;
}

void make_coarse(const FloatImage& from, const FloatImage* mask, int margin, core::ThreadPool& pool,
                 CoarseImage& image) {
  image.variance = 0, image.has_mask = false;
  image.width = from.width, image.height = from.height, image.margin = margin;
  image.stride = from.width + 2 * margin + kPadded;
  const std::size_t size = static_cast<std::size_t>(image.stride) * (from.height + 2 * margin) + kPadded;
  std::vector<float>* const planes[] = {&image.values, &image.squares,     &image.counts,
                                        &image.sum,    &image.sum_squares, &image.number};
  pool.parallel_for(std::ssize(planes), 1,
                    [&](std::int64_t k, std::int64_t, int) { planes[k]->assign(size, 0.0F); });
  std::vector<RowSums> rows(from.height);
  core::for_each_row(pool, from.height, [&](int y) {
    for (int x = 0; x < from.width; ++x) rows[y].values += from.row(y)[x];
  });
  double sum = 0;
  for (const RowSums& row : rows) sum += row.values;
  const double pixels = std::max(1.0, static_cast<double>(from.width) * from.height);
  image.mean = sum / pixels;
  core::for_each_row(pool, from.height, [&](int y) { rows[y] = fill_row(from, mask, y, image); });
  for (const RowSums& row : rows) {
    image.variance += row.squares / pixels;
    image.has_mask |= row.has_mask;
  }
}

}  // namespace

SampleImage sample_image(const FloatImage& image, const FloatImage* mask) {
  return {.values = image.values.data(),
          .stride = image.width,
          .width = image.width,
          .height = image.height,
          .sampling = Sampling::bilinear,
          .offset = 0,
          .mask = mask ? mask->values.data() : nullptr};
}

void ImagePyramid::set(ImageView image, ImageView mask, core::ThreadPool& pool) {
  image_ = image;
  made_ = 0, has_full_ = false;
  masks_.clear();
  for (auto& [level, coarse] : coarse_) coarse.is_made = false;
  if (mask.empty()) return;
  masks_.push_back(float_image(mask, pool));
  for (float& v : masks_[0].values) v = v != 0 ? 1.0F : 0.0F;
}

void ImagePyramid::require(int level, core::ThreadPool& pool) {
  if (std::ssize(levels_) <= level) levels_.resize(level + 1);
  for (; made_ < level; ++made_) {
    if (made_ == 0)
      make_reduced(image_, pool, levels_[1]);
    else
      make_reduced(levels_[made_], pool, levels_[made_ + 1]);
    if (!masks_.empty()) masks_.push_back(reduced_mask(masks_.back()));
  }
}

void ImagePyramid::require_full(core::ThreadPool& pool) {
  if (!has_full_) make_float_image(image_, pool, levels_[0]);
  has_full_ = true;
}

const CoarseImage& ImagePyramid::coarse(int level, int margin, core::ThreadPool& pool) {
  Coarse& known = coarse_[level];
  if (known.is_made && known.image.margin >= margin) return known.image;
  make_coarse(levels_[level], mask(level), margin, pool, known.image);
  known.is_made = true;
  return known.image;
}

}  // namespace dic::match

#include "correlate/cpu/fft_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dic::correlate {
namespace {

constexpr int kSizes[] = {32,  48,  64,  80,  96,  128, 144, 160, 192,  240,  256,  288,
                          320, 384, 480, 512, 576, 640, 768, 960, 1024, 1280, 1536, 2048};
// Complex float32 elements that fit in a second-level cache: the tile and the reference's spectrum take 1 MB,
// with the sums of both tiles 2 MB. A larger cache gains nothing more: docs/performance-tables.md.
constexpr double kCached = 256 * 256;
constexpr double kUncachedPenalty = 1.5;

// Number of tiles of `valid` shifts that cover n shifts.
double tiles(int n, int valid) { return std::ceil(static_cast<double>(n) / valid); }

}  // namespace

double fft_work(const CorrelateShape& shape, const FftSize& size) {
  const int valid_y = size.ny - shape.reference.height + 1, valid_x = size.nx - shape.reference.width + 1;
  const double area = static_cast<double>(size.ny) * size.nx;
  const double transform = area * (std::log2(area) + 4) * (area > kCached ? kUncachedPenalty : 1.0);
  const double across = tiles(shape.shifts.nx(), valid_x);  // two tiles share a transform
  const double windows = tiles(shape.shifts.ny(), valid_y) * std::ceil(across / 2);
  const double references = static_cast<double>(shape.references) / static_cast<double>(shape.pairs);
  return transform * (2 * windows + references);
}

FftSize choose_fft_size(const CorrelateShape& shape) {
  FftSize best;
  double least = std::numeric_limits<double>::infinity();
  // Sizes beyond the smallest that covers all shifts in one transform only cost more.
  const int whole_y = shape.reference.height + shape.shifts.ny() - 1,
            whole_x = shape.reference.width + shape.shifts.nx() - 1;
  for (int ny : kSizes) {
    if (ny < shape.reference.height) continue;
    for (int nx : kSizes) {
      if (nx < shape.reference.width) continue;
      const double work = fft_work(shape, {ny, nx});
      if (work < least) least = work, best = {ny, nx};
      if (nx >= whole_x) break;
    }
    if (ny >= whole_y) break;
  }
  return best;
}

std::vector<int> fft_radices(int n) {
  std::vector<int> radices;
  for (int radix : {5, 3, 4, 2})
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  return radices;
}

}  // namespace dic::correlate

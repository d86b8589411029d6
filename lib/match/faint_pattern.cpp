#include "match/faint_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>

namespace dic::match {
namespace {

/// Variance by squared mean below which a pattern is faint: floats of scores near 1 are 6e-8 apart, which is
/// less than a thousandth of that.
constexpr double kFaint = 1e-3;

constexpr int kRowsPerChunk = 8;

/// Calls function(pattern value) for every element that counts.
template <typename Function>
void for_each_value(const Pattern& pattern, const Function& function) {
  for (int j = 0; j < pattern.mask.height(); ++j)
    for (int i = 0; i < pattern.mask.width(); ++i)
      if (pattern.mask.row<std::uint8_t>(j)[i] != 0) function(pattern.values.row<double>(j)[i]);
}

struct Moments {
  double mean = 0;
  double spread = 0;  ///< sum of squared deviations from the mean
};

Moments moments(const Pattern& pattern) {
  Moments of;
  const auto n = static_cast<double>(pattern.elements);
  for_each_value(pattern, [&](double value) { of.mean += value / n; });
  for_each_value(pattern, [&](double value) { of.spread += (value - of.mean) * (value - of.mean); });
  return of;
}

double mean_of(ImageView image) {
  return visit_scalar(image.type, [&]<typename T>(T) {
    double sum = 0;
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) sum += static_cast<double>(image.row<T>(y)[x]);
    return sum / image.width / image.height;
  });
}

/// The image less `level`. Float32 would lose a faint contrast beside other areas of the image.
Image deviations(ImageView image, double level, core::ThreadPool& pool) {
  Image out = Image::uninitialized(image.size(), ScalarType::f64);
  visit_scalar(image.type, [&]<typename T>(T) {
    pool.parallel_for(image.height, kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (int y = static_cast<int>(begin); y < end; ++y)
        std::transform(image.row<T>(y), image.row<T>(y) + image.width, out.row<double>(y),
                       [&](T value) { return static_cast<double>(value) - level; });
    });
  });
  return out;
}

/// The pattern less its mean; 0 where it does not count.
Image deviations(const Pattern& pattern, double mean) {
  Image out({pattern.values.width(), pattern.values.height()}, ScalarType::f64);
  for (int j = 0; j < out.height(); ++j)
    for (int i = 0; i < out.width(); ++i)
      if (pattern.mask.row<std::uint8_t>(j)[i] != 0)
        out.row<double>(j)[i] = pattern.values.row<double>(j)[i] - mean;
  return out;
}

Surfaces products(const Image& pattern, const Image& image, Correlator& correlator) {
  const ImageView reference = pattern, window = image;
  const PatchPosition corner;
  CorrelateRequest request;
  request.reference = {{&reference, 1}, {&corner, 1}, reference.size()};
  request.search = {{&window, 1}, {&corner, 1}, window.size()};
  request.shifts = Shifts::valid(reference.size(), window.size());
  request.criterion = Criterion::cross_correlation;
  Surfaces out;
  correlator.surfaces(request, out);
  return out;
}

/// Elements of a row of a pattern that count and lie side by side: from `begin` to before `end`.
struct Run {
  int row = 0, begin = 0, end = 0;
};

std::vector<Run> runs_of(const Image& mask) {
  std::vector<Run> runs;
  for (int j = 0; j < mask.height(); ++j) {
    const std::uint8_t* row = mask.row<std::uint8_t>(j);
    for (int i = 0; i < mask.width(); ++i) {
      if (row[i] == 0) continue;
      const int begin = i;
      while (i < mask.width() && row[i] != 0) ++i;
      runs.push_back({j, begin, i});
    }
  }
  return runs;
}

/// Sums of an image's values and squares from the begin of each row.
class RowSums {
 public:
  explicit RowSums(const Image& image) : stride_(image.width() + 1), sums_(stride_ * image.height()) {
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) {
        const double value = image.row<double>(y)[x];
        const Sums& before = sums_[y * stride_ + x];
        sums_[y * stride_ + x + 1] = {before.values + value, before.squares + value * value};
      }
  }

  struct Sums {
    double values = 0, squares = 0;
  };
  /// Sums under the runs of a pattern at (x, y).
  Sums under(const std::vector<Run>& runs, int x, int y) const {
    Sums all;
    for (const Run& run : runs) {
      const Sums* const row = &sums_[(y + run.row) * stride_ + x];
      all.values += row[run.end].values - row[run.begin].values;
      all.squares += row[run.end].squares - row[run.begin].squares;
    }
    return all;
  }

 private:
  std::size_t stride_;
  std::vector<Sums> sums_;
};

/// NCC - 1 of a pattern and a window, by mean and spread of both and the sum of products of their deviations.
/// With f = mean + deviation for both, the terms of the means cancel in |f|^2 |g|^2 - (f g)^2.
double below_one(double n, const Moments& f, const Moments& g, double product) {
  const double energies = (n * f.mean * f.mean + f.spread) * (n * g.mean * g.mean + g.spread);
  if (!(energies > 0)) return -1;
  const double across =
      f.mean * f.mean * g.spread - 2 * f.mean * g.mean * product + g.mean * g.mean * f.spread;
  const double misfit =
      std::clamp((n * across + f.spread * g.spread - product * product) / energies, 0.0, 1.0);
  const double below = misfit / (1 + std::sqrt(1 - misfit));
  return n * f.mean * g.mean + product >= 0 ? -below : below - 2;
}

}  // namespace

bool is_faint(const Pattern& pattern) {
  const Moments of = moments(pattern);
  return of.spread < kFaint * static_cast<double>(pattern.elements) * of.mean * of.mean;
}

std::vector<float> ncc_below_one(const Pattern& pattern, ImageView image, Correlator& correlator,
                                 core::ThreadPool& pool) {
  const Moments f = moments(pattern);
  const double level = mean_of(image), n = static_cast<double>(pattern.elements);
  const Image window = deviations(image, level, pool);
  const Surfaces surfaces = products(deviations(pattern, f.mean), window, correlator);
  const RowSums sums(window);
  const std::vector<Run> runs = runs_of(pattern.mask);
  std::vector<float> out(static_cast<std::size_t>(surfaces.nx) * surfaces.ny);
  const double* const product = surfaces.surface<double>(0);
  pool.parallel_for(surfaces.ny, kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < end; ++y)
      for (int x = 0; x < surfaces.nx; ++x) {
        const RowSums::Sums at = sums.under(runs, x, y);
        const Moments g = {level + at.values / n, std::max(at.squares - at.values * at.values / n, 0.0)};
        const std::size_t k = static_cast<std::size_t>(y) * surfaces.nx + x;
        out[k] = static_cast<float>(below_one(n, f, g, product[k]));
      }
  });
  return out;
}

}  // namespace dic::match

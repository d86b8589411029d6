#include "analysis/power_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <numbers>
#include <utility>

namespace dic::analysis {
namespace {

constexpr int kSize = PowerSpectrum::kSize;
constexpr int kTiles = 32;  ///< an even number; more tiles do not change any decision

using Complex = std::complex<float>;

/// The product, without the tests for infinity of operator*.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Transforms of kSize values, radix 2.
class Transform {
 public:
  Transform() {
    for (int k = 0; k < kSize / 2; ++k)
      turns_[k] = std::polar(1.0f, -2 * std::numbers::pi_v<float> * static_cast<float>(k) / kSize);
    for (int k = 0; k < kSize; ++k)
      for (int bit = 1; bit < kSize; bit *= 2) reversed_[k] = 2 * reversed_[k] + ((k & bit) != 0);
  }

  void operator()(Complex* values, int stride) const {
    std::array<Complex, kSize> v;
    for (int k = 0; k < kSize; ++k) v[reversed_[k]] = values[k * stride];
    for (int half = 1; half < kSize; half *= 2)
      for (int first = 0; first < kSize; first += 2 * half)
        for (int k = 0; k < half; ++k) {
          Complex &a = v[first + k], &b = v[first + k + half];
          const Complex turned = times(b, turns_[k * (kSize / 2 / half)]);
          b = a - turned;
          a += turned;
        }
    for (int k = 0; k < kSize; ++k) values[k * stride] = v[k];
  }

 private:
  std::array<Complex, kSize / 2> turns_;
  std::array<int, kSize> reversed_{};
};

using Tile = std::array<float, kSize * kSize>;

/// The tile around a point, without its mean and times the window.
Tile windowed_tile(ImageView image, int x, int y, const std::array<float, kSize>& window) {
  const int left = std::clamp(x - kSize / 2, 0, image.width - kSize);
  const int top = std::clamp(y - kSize / 2, 0, image.height - kSize);
  Tile tile;
  visit_scalar(image.type, [&](auto element) {
    for (int j = 0; j < kSize; ++j) {
      const auto* row = image.row<decltype(element)>(top + j) + left;
      for (int i = 0; i < kSize; ++i) tile[j * kSize + i] = static_cast<float>(row[i]);
    }
  });
  double sum = 0;
  for (const float value : tile) sum += value;
  const auto mean = static_cast<float>(sum / (kSize * kSize));
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i)
      tile[j * kSize + i] = (tile[j * kSize + i] - mean) * window[i] * window[j];
  return tile;
}

/// Medians over pairs of tiles, for each frequency, as means: the sum of two powers of noise has a median of
/// 0.839 of its mean. powers: [pairs, kSize, kSize], not yet symmetric.
std::vector<double> medians(const std::vector<float>& powers, double energy) {
  constexpr double of_mean = 0.839;
  constexpr std::size_t pairs = kTiles / 2, size = std::size_t{kSize} * kSize;
  std::vector<double> medians(size);
  std::array<double, pairs> values;
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i) {
      const int here = j * kSize + i, there = (kSize - j) % kSize * kSize + (kSize - i) % kSize;
      if (there < here) continue;
      for (std::size_t k = 0; k < pairs; ++k)
        values[k] = 0.5 * (double{powers[k * size + here]} + double{powers[k * size + there]});
      std::ranges::nth_element(values, values.begin() + pairs / 2);
      medians[here] = medians[there] = values[pairs / 2] / (2 * of_mean * energy * energy);
    }
  return medians;
}

}  // namespace

double PowerSpectrum::frequency(int k) {
  return 2 * std::numbers::pi * (k <= kSize / 2 ? k : k - kSize) / kSize;
}

std::optional<PowerSpectrum> PowerSpectrum::of(ImageView image, const fields::Points& points) {
  if (image.width < kSize || image.height < kSize || points.size() == 0) return std::nullopt;
  std::array<float, kSize> window;
  double energy = 0;
  for (int k = 0; k < kSize; ++k) {
    window[k] = 0.5f - 0.5f * std::cos(2 * std::numbers::pi_v<float> * static_cast<float>(k) / kSize);
    energy += window[k] * window[k];
  }
  const Transform transform;
  PowerSpectrum spectrum;
  const auto tile_at = [&](int k) {
    // Multiples of the golden ratio are spread evenly along rows and columns.
    double unused = 0;
    const double share = std::modf((k + 0.5) * std::numbers::phi, &unused);
    const auto i = static_cast<std::int64_t>(share * static_cast<double>(points.size()));
    return windowed_tile(image, points.x[i], points.y[i], window);
  };
  std::vector<Complex> pair(kSize * kSize);
  std::vector<float> powers;
  for (int k = 0; k < kTiles;
       k += 2) {  // transforms two real tiles as one complex tile, since their powers add up
    const Tile a = tile_at(k), b = tile_at(k + 1);
    for (int i = 0; i < kSize * kSize; ++i) pair[i] = {a[i], b[i]};
    for (int j = 0; j < kSize; ++j) transform(&pair[j * kSize], 1);
    for (int i = 0; i < kSize; ++i) transform(&pair[i], kSize);
    for (int i = 0; i < kSize * kSize; ++i) spectrum.power_[i] += std::norm(pair[i]);
    std::ranges::transform(pair, std::back_inserter(powers), [](Complex value) { return std::norm(value); });
  }
  spectrum.typical_ = medians(powers, energy);
  for (double& power : spectrum.power_) power /= kTiles * energy * energy;
  // |A + iB|^2 contains a product of A and B that is odd in the frequency.
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i) {
      double& there = spectrum.power_[(kSize - j) % kSize * kSize + (kSize - i) % kSize];
      double& here = spectrum.power_[j * kSize + i];
      here = there = 0.5 * (here + there);
    }
  return spectrum;
}

PowerSpectrum PowerSpectrum::typical() const {
  PowerSpectrum typical;
  typical.power_ = typical.typical_ = typical_;
  return typical;
}

double PowerSpectrum::noise_variance() const {
  constexpr int first = 3 * kSize / 8, last = kSize - first;
  std::vector<double> corner;
  for (int j = first; j <= last; ++j)
    for (int i = first; i <= last; ++i) corner.push_back((*this)(i, j));
  const auto middle = corner.begin() + static_cast<std::ptrdiff_t>(corner.size() / 2);
  std::nth_element(corner.begin(), middle, corner.end());
  return *middle;
}

}  // namespace dic::analysis

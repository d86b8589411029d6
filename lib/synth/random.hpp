#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

/// Random numbers as functions of a key and a counter: independent of the order of calls, the number of
/// threads and the standard library (whose distributions differ).
namespace dic::synth {

/// The finalizer of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64-bit integers that mixes well.
inline std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// A uniform number in the open interval (0, 1).
inline double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

/// Two independent standard normal numbers (Box & Muller 1958).
inline std::pair<double, double> normal_pair(std::uint64_t key, std::uint64_t counter) {
  const std::uint64_t first = mix(key + mix(counter)), second = mix(first);
  const double radius = std::sqrt(-2 * std::log(uniform(first)));
  const double angle = 2 * std::numbers::pi * uniform(second);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// A Poisson number of this mean (Knuth's products below 60, where the normal distribution is no longer
/// close).
inline double poisson(std::uint64_t key, std::uint64_t counter, double mean) {
  if (mean >= 60) return std::max(0.0, std::round(mean + std::sqrt(mean) * normal_pair(key, counter).first));
  std::uint64_t bits = mix(key + mix(counter));
  double product = 1;
  const double limit = std::exp(-std::max(0.0, mean));
  for (int n = 0;; ++n) {
    bits = mix(bits);
    product *= uniform(bits);
    if (product < limit) return n;
  }
}

}  // namespace dic::synth

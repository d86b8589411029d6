#pragma once

#include <cstdint>
#include <dic/correlate.hpp>
#include <vector>

/// Sizes of the transforms of the cpu-fft variant.
namespace dic::correlate {

/// Rows and columns of one transform: multiples of 16 that are products of 2, 3, 4 and 5.
struct FftSize {
  int ny = 0;
  int nx = 0;
};

/// The size that makes the whole search cheapest; {0, 0} if the reference is too large for every size.
FftSize choose_fft_size(const CorrelateShape& shape);
/// Estimated work of one pair with that size, in units of one complex butterfly operation.
double fft_work(const CorrelateShape& shape, const FftSize& size);
/// Radices whose product is n, in the order 5, 3, 4, 2.
std::vector<int> fft_radices(int n);

}  // namespace dic::correlate

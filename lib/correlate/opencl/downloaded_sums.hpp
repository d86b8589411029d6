#pragma once

#include <algorithm>
#include <cstdint>

#include "correlate/cpu/kernel.hpp"
#include "correlate/opencl/device_sums.hpp"

namespace dic::correlate::opencl {

/// Hands sums that a device has computed to the CPU's runner, which scores them.
template <typename T>
class DownloadedSums final : public Kernel<T> {
 public:
  /// sums: the object that holds the sums of the pairs which are scored next.
  explicit DownloadedSums(const Sums& sums) : sums_(sums) {}

  void begin(const CorrelateShape& shape) override {
    criterion_ = shape.criterion;
    shifts_ = shape.shifts;
  }
  TileSize tile() const override { return {64, 64}; }
  Sum<T> set_reference(const Block<T>&, const Block<std::uint8_t>&, const ReferenceSums<T>& sums) override {
    return centring_offset(sums, criterion_);
  }
  void begin_part(std::int64_t pair, const Shifts& part) override {
    first_ = (pair - sums_.pairs.begin) * shifts_.count() +
             std::int64_t{part.dy_min - shifts_.dy_min} * shifts_.nx() + (part.dx_min - shifts_.dx_min);
  }
  double correlate(const Block<T>&, int ny, int nx, Sum<T>* out) override {
    const bool is_narrow = sums_.bytes_of_sum == sizeof(std::uint32_t);
    for (int dy = 0; dy < ny; ++dy, out += nx) {
      const std::int64_t row = first_ + std::int64_t{dy} * shifts_.nx();
      is_narrow ? copy<std::uint32_t>(row, nx, out) : copy<Sum<T>>(row, nx, out);
    }
    return 0;
  }

 private:
  template <typename From>
  void copy(std::int64_t first, int count, Sum<T>* out) const {
    std::copy_n(reinterpret_cast<const From*>(sums_.bytes.data()) + first, count, out);
  }

  const Sums& sums_;
  Criterion criterion_ = Criterion::zncc;
  Shifts shifts_;
  std::int64_t first_ = 0;  ///< index of the part's first sum in sums_
};

}  // namespace dic::correlate::opencl

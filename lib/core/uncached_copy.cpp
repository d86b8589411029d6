#include "core/uncached_copy.hpp"

#include <cstring>

#include "core/simd_targets.hpp"  // must precede Highway's headers

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/uncached_copy.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::core {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLine = 64;  ///< bytes of a cache line; a partly written line would be read first

void copy_row(std::uint8_t* to, std::size_t pitch, const std::uint8_t* from, std::size_t bytes) {
  const hn::CappedTag<std::uint8_t, kLine> lanes;
  const std::size_t step = hn::Lanes(lanes);
  std::size_t x = 0;
  for (; x + step <= bytes; x += step) hn::Stream(hn::LoadU(lanes, from + x), lanes, to + x);
  if (x < bytes) {
    alignas(kLine) std::uint8_t last[kLine] = {};
    std::memcpy(last, from + x, bytes - x);
    hn::Stream(hn::Load(lanes, last), lanes, to + x);
    x += step;
  }
  for (; x < pitch; x += step) hn::Stream(hn::Zero(lanes), lanes, to + x);
}

void copy_rows(std::byte* to, std::size_t pitch, const std::byte* from, std::ptrdiff_t stride,
               std::size_t row_bytes, std::int64_t rows) {
  for (; rows > 0; --rows, to += pitch, from += stride)
    copy_row(reinterpret_cast<std::uint8_t*>(to), pitch, reinterpret_cast<const std::uint8_t*>(from),
             row_bytes);
  hwy::FlushStream();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dic::core
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::core {

HWY_EXPORT(copy_rows);

void copy_rows_uncached(std::byte* to, std::size_t pitch, const std::byte* from, std::ptrdiff_t stride,
                        std::size_t row_bytes, std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(copy_rows)(to, pitch, from, stride, row_bytes, rows);
}

}  // namespace dic::core
#endif

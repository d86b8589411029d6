#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/shared/image_view.hpp>
#include <string_view>

namespace dic {

/// Inclusive rectangle of integer shifts, in px: dx_min <= dx <= dx_max, dy_min <= dy <= dy_max.
struct Shifts {
  int dx_min = 0, dx_max = 0, dy_min = 0, dy_max = 0;

  int nx() const { return dx_max - dx_min + 1; }
  int ny() const { return dy_max - dy_min + 1; }
  /// Number of shifts; 0 where a maximum lies below its minimum.
  std::int64_t count() const { return nx() > 0 && ny() > 0 ? static_cast<std::int64_t>(nx()) * ny() : 0; }
  bool operator==(const Shifts&) const = default;

  /// All shifts with at least one overlapping element.
  static constexpr Shifts full(Size reference, Size search) {
    return {-(reference.width - 1), search.width - 1, -(reference.height - 1), search.height - 1};
  }
  /// All shifts with the reference wholly inside the window; empty if the reference is larger.
  static constexpr Shifts valid(Size reference, Size search) {
    return {0, search.width - reference.width, 0, search.height - reference.height};
  }
};

/// Pairs of references and windows that are correlated. A pair is one reference with one window; results are
/// in pair order.
enum class Pairing : std::uint8_t {
  one_to_one,   ///< n references, n windows: pair k = (k, k)
  one_to_many,  ///< 1 reference, m windows: pair k = (0, k)
  n_to_mn,      ///< n references, n*m windows: reference i meets windows i*m .. i*m+m-1; pair k = (k / m, k)
  n_to_m        ///< n references, m windows: all n*m pairs; pair k = (k / m, k % m)
};
template <>
struct EnumNames<Pairing> {
  static constexpr EnumName<Pairing> table[] = {{Pairing::one_to_one, "one_to_one"},
                                                {Pairing::one_to_many, "one_to_many"},
                                                {Pairing::n_to_mn, "n_to_mn"},
                                                {Pairing::n_to_m, "n_to_m"}};
};

/// Position of a patch: its top-left element is (x, y), px, in image number `image`.
struct PatchPosition {
  int image = 0;
  int x = 0;
  int y = 0;
};

/// The score that is computed for every shift.
enum class Criterion : std::uint8_t {
  cross_correlation,  ///< the sum of products c itself
  zncc,               ///< zero-mean normalised cross-correlation, [-1, 1]
  ncc,                ///< c / sqrt(sum reference^2 * sum window^2): [-1, 1] ([0, 1] for unsigned types)
  ssd                 ///< sum (reference - window)^2 >= 0, in grey levels squared; peaks are minima
};
template <>
struct EnumNames<Criterion> {
  static constexpr EnumName<Criterion> table[] = {{Criterion::cross_correlation, "cross_correlation"},
                                                  {Criterion::zncc, "zncc"},
                                                  {Criterion::ncc, "ncc"},
                                                  {Criterion::ssd, "ssd"}};
};

/// Element type of correlation surfaces.
enum class SurfaceType : std::uint8_t { u32, u64, i64, f32, f64 };
template <>
struct EnumNames<SurfaceType> {
  static constexpr EnumName<SurfaceType> table[] = {{SurfaceType::u32, "u32"},
                                                    {SurfaceType::u64, "u64"},
                                                    {SurfaceType::i64, "i64"},
                                                    {SurfaceType::f32, "f32"},
                                                    {SurfaceType::f64, "f64"}};
};
/// Bytes of an element.
constexpr std::size_t size_of(SurfaceType type) {
  return type == SurfaceType::u32 || type == SurfaceType::f32 ? 4 : 8;
}

/// The best shift of one pair. Ties go to the lowest (dy, dx) in row-major order.
struct Peak {
  int dx = 0;              ///< px
  int dy = 0;              ///< px
  float score = 0;         ///< value at the peak; 0 if no shift is defined
  bool found = false;      ///< false: no shift of the rectangle is defined, or no contrast anywhere
  bool at_border = false;  ///< the peak is on the edge of the rectangle, so the true peak may lie beyond
  float second_score = 0;  ///< best value more than 2 px (in x or y) away from the peak; 0 if there is none
  /// Values at dy-1..dy+1, dx-1..dx+1 around the peak, row-major; the peak's own value where undefined.
  float neighbourhood[9] = {};
};

}  // namespace dic

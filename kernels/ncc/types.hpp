#pragma once

#include <array>
#include <cstdint>
#include <dic/kernels/ncc.hpp>
#include <type_traits>

/// Types in which elements of a type are summed: checks, instantiation and dispatch read these lists.
namespace dic::kernels {

template <typename T>
constexpr ScalarType scalar_type = std::is_same_v<T, std::uint8_t>    ? ScalarType::u8
                                   : std::is_same_v<T, std::uint16_t> ? ScalarType::u16
                                   : std::is_same_v<T, std::int32_t>  ? ScalarType::i32
                                   : std::is_same_v<T, float>         ? ScalarType::f32
                                                                      : ScalarType::f64;
template <typename Sum>
constexpr SurfaceType sum_type = std::is_same_v<Sum, std::uint32_t>   ? SurfaceType::u32
                                 : std::is_same_v<Sum, std::uint64_t> ? SurfaceType::u64
                                 : std::is_same_v<Sum, std::int64_t>  ? SurfaceType::i64
                                 : std::is_same_v<Sum, float>         ? SurfaceType::f32
                                                                      : SurfaceType::f64;

template <typename T, typename Sum>
struct TypePair {
  static constexpr ScalarType type = scalar_type<T>;
  static bool matches(const NccJob& job) { return job.type == type && job.sums == sum_type<Sum>; }
};

template <typename... Pairs>
struct TypeList {
  /// Element types of the pairs.
  static constexpr std::array elements{Pairs::type...};

  /// Calls visitor(pair) with the pair of the job's types, if the list holds it.
  template <typename Visitor>
  static void visit(const NccJob& job, Visitor&& visitor) {
    ((Pairs::matches(job) ? visitor(Pairs{}) : void()), ...);
  }
  static bool holds(const NccJob& job) { return (Pairs::matches(job) || ...); }
};
using AllTypes = TypeList<TypePair<std::uint8_t, std::uint32_t>, TypePair<std::uint8_t, std::uint64_t>,
                          TypePair<std::uint16_t, std::uint64_t>, TypePair<std::int32_t, std::int64_t>,
                          TypePair<float, float>, TypePair<float, double>, TypePair<double, double>>;
/// Types of images. The variants for comparison are compiled for these only.
using ImageTypes = TypeList<TypePair<std::uint8_t, std::uint32_t>, TypePair<std::uint16_t, std::uint64_t>,
                            TypePair<float, float>>;

}  // namespace dic::kernels

#pragma once

#include "correlate/cpu/kernel.hpp"

/// Helpers of the files that declare a CPU variant.
namespace dic::correlate {

inline std::vector<Pairing> all_pairings() {
  return {Pairing::one_to_one, Pairing::one_to_many, Pairing::n_to_mn, Pairing::n_to_m};
}
inline std::vector<Criterion> all_criteria() {
  return {Criterion::cross_correlation, Criterion::zncc, Criterion::ncc, Criterion::ssd};
}
inline std::vector<ScalarType> all_types() {
  return {ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64};
}
inline std::string always_supported(const CorrelateShape&) { return {}; }

template <template <typename> class K>
std::unique_ptr<KernelBase> make_kernel(ScalarType type) {
  return visit_scalar(type, [](auto element) -> std::unique_ptr<KernelBase> {
    return std::make_unique<K<decltype(element)>>();
  });
}

}  // namespace dic::correlate

#pragma once

#include "correlate/cpu/kernel.hpp"

/// Shared by the files that declare a CPU variant.
namespace dic::correlate {

inline std::vector<Form> all_forms() {
  return {Form::one_to_one, Form::one_to_many, Form::n_to_mn, Form::n_to_m};
}
inline std::vector<Measure> all_measures() {
  return {Measure::sums, Measure::zncc, Measure::ncc, Measure::ssd};
}
inline std::vector<ScalarType> all_types() {
  return {ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64};
}
inline std::string no_problem(const CorrelateShape&) { return {}; }

template <template <typename> class K>
std::unique_ptr<KernelBase> make_kernel(ScalarType type) {
  return visit_scalar(type, [](auto element) -> std::unique_ptr<KernelBase> {
    return std::make_unique<K<decltype(element)>>();
  });
}

}  // namespace dic::correlate

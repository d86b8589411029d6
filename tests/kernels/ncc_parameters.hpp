#pragma once

#include <algorithm>
#include <dic/kernels/ncc.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/ncc_cases.hpp"

namespace dic::test {

inline kernels::NccJob shape_of(const Case& c, ScalarType type, SurfaceType sums) {
  kernels::NccJob job;
  job.pairing = c.pairing;
  job.type = type;
  job.sums = sums;
  job.reference = {
      .count = std::ssize(c.reference.positions), .height = c.reference.h, .width = c.reference.w};
  job.search = {.count = std::ssize(c.search.positions), .height = c.search.h, .width = c.search.w};
  job.shifts = c.shifts;
  job.pairs = c.pairs;
  return job;
}

/// A variant and a type that it supports.
struct NccParameter {
  const kernels::NccVariant* variant;
  ScalarType type;
  SurfaceType sums;
  std::string name;

  bool can_do(const Case& c) const {
    return variant->computes_sums() && variant->unsupported_reason(shape_of(c, type, sums)).empty();
  }
};
inline void PrintTo(const NccParameter& p, std::ostream* out) { *out << p.name; }

/// Every variant with every type that it supports in at least one case.
inline std::vector<NccParameter> ncc_parameters() {
  struct Types {
    ScalarType type;
    SurfaceType sums;
    const char* name;
  };
  const std::vector<Case> cases = ncc_cases();
  std::vector<NccParameter> all;
  for (const kernels::NccVariant& variant : kernels::ncc_variants()) {
    for (const Types& t :
         {Types{ScalarType::u8, SurfaceType::u32, "u8"}, Types{ScalarType::u8, SurfaceType::u64, "u8_in_u64"},
          Types{ScalarType::u16, SurfaceType::u64, "u16"}, Types{ScalarType::i32, SurfaceType::i64, "i32"},
          Types{ScalarType::f32, SurfaceType::f32, "f32"},
          Types{ScalarType::f32, SurfaceType::f64, "f32_in_f64"},
          Types{ScalarType::f64, SurfaceType::f64, "f64"}}) {
      NccParameter parameter{&variant, t.type, t.sums, std::string(variant.name) + "_" + t.name};
      std::replace(parameter.name.begin(), parameter.name.end(), '-', '_');
      if (std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return parameter.can_do(c); }))
        all.push_back(parameter);
    }
  }
  return all;
}

}  // namespace dic::test

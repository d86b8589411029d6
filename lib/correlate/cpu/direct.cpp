#include <algorithm>

#include "core/simd_targets.hpp"  // must precede Highway's headers
#include "correlate/cpu/kernel.hpp"
#include "correlate/cpu/variants.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "correlate/cpu/direct.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// A GCC pragma adds VNNI to Highway's target; builds by other compilers do not use VNNI.
#undef DIC_HAVE_VNNI
#define DIC_HAVE_VNNI (HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC_ACTUAL)

#if DIC_HAVE_VNNI
HWY_BEFORE_NAMESPACE();
#pragma GCC target("avx512vnni")
namespace dic::correlate::vnni {
namespace hn = hwy::HWY_NAMESPACE;
#define DIC_DIRECT_VNNI 1
#include "correlate/cpu/direct-inl.hpp"
#undef DIC_DIRECT_VNNI

std::unique_ptr<KernelBase> make_direct_u8() { return std::make_unique<DirectKernel<std::uint8_t>>(); }
}  // namespace dic::correlate::vnni
HWY_AFTER_NAMESPACE();
#endif

HWY_BEFORE_NAMESPACE();
namespace dic::correlate {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// Processors without SIMD that Highway knows use the plain loops.
std::unique_ptr<KernelBase> make_direct(ScalarType type) { return naive_variant().make(type); }
#else
#define DIC_DIRECT_VNNI 0
#include "correlate/cpu/direct-inl.hpp"
#undef DIC_DIRECT_VNNI

std::unique_ptr<KernelBase> make_direct(ScalarType type) {
#if DIC_HAVE_VNNI
  if (type == ScalarType::u8 && __builtin_cpu_supports("avx512vnni")) return vnni::make_direct_u8();
#endif
  return make_kernel<DirectKernel>(type);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace dic::correlate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::correlate {
HWY_EXPORT(make_direct);

CpuVariant direct_variant() {
  return {.info = {.name = "cpu-direct",
                   .backend = "cpu",
                   .pairings = all_pairings(),
                   .types = all_types(),
                   .criteria = all_criteria(),
                   .masks = true,
                   .idea = "SIMD over columns, a block of shifts in registers; exact integers or float64"},
          .make = [](ScalarType type) { return HWY_DYNAMIC_DISPATCH(make_direct)(type); },
          .unsupported_reason = always_supported};
}

}  // namespace dic::correlate
#endif

#pragma once

// The instruction sets that vectorized code is compiled for (DIC_SIMD_TARGETS in CMake). Include this file
// before any Highway header. The baseline of the processor family is always one of them.
//
// Vectors without a compile-time size are left out, because our kernels keep vectors in arrays; NEON serves
// those machines. So is SSSE3: every x86-64 processor since 2008 has SSE4.
#define DIC_UNUSED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3)
#if defined(DIC_ONLY_AVX512)
#define HWY_DISABLED_TARGETS (DIC_UNUSED_TARGETS | HWY_SSE4 | HWY_AVX2)
#elif defined(DIC_ONLY_AVX2)
#define HWY_DISABLED_TARGETS (DIC_UNUSED_TARGETS | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS DIC_UNUSED_TARGETS
#endif

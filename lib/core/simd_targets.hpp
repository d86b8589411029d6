#pragma once

// Include before any Highway header. Targets whose vectors have no compile-time size are left out: our kernels
// keep vectors in arrays. NEON serves those machines.
#define DIC_UNSIZED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#if DIC_FEW_SIMD_TARGETS
// Sanitizers: what every processor has, and AVX2. Each target costs the compiler minutes.
#define HWY_DISABLED_TARGETS (DIC_UNSIZED_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS DIC_UNSIZED_TARGETS
#endif

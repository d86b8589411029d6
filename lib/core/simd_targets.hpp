#pragma once

// Include before any Highway header. Targets whose vectors have no compile-time size are left out: our kernels
// keep vectors in arrays. NEON serves those machines.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#pragma once

/// Marks functions that kernels and host code both call.
#ifdef __CUDACC__
#define DIC_HOST_DEVICE __host__ __device__
#else
#define DIC_HOST_DEVICE
#endif

/// Unrolls the loop that follows in kernels: their arrays stay in registers only if all indices are
/// constants.
#ifdef __CUDA_ARCH__
#define DIC_UNROLL _Pragma("unroll")
#else
#define DIC_UNROLL
#endif

/// Keeps the loop that follows as a loop in kernels, for rare cases that should take few registers.
#ifdef __CUDA_ARCH__
#define DIC_NO_UNROLL _Pragma("unroll 1")
#else
#define DIC_NO_UNROLL
#endif

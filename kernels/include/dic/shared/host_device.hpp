#pragma once

/// Marks functions that kernels and host code both call.
#ifdef __CUDACC__
#define DIC_HOST_DEVICE __host__ __device__
#else
#define DIC_HOST_DEVICE
#endif

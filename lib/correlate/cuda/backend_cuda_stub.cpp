#include "correlate/backend_stub.hpp"

// Stands in for backend_cuda.cpp in builds without CUDA.
namespace dic::correlate {
namespace {

constexpr char kMessage[] =
    "This dic was built without CUDA: use --device cpu, or build it where nvcc is installed with "
    "-DDIC_CUDA=ON.";

}  // namespace

BackendEntry cuda_backend() { return missing_backend<kMessage>("cuda"); }

}  // namespace dic::correlate

#include <dic/kernels/workspace.hpp>

#include "fft/cufft.hpp"

namespace dic::kernels {

Workspace::Workspace(std::size_t most_bytes)
    : most_bytes_(most_bytes), fft_plans_(std::make_unique<FftPlans>()) {}
Workspace::~Workspace() = default;

}  // namespace dic::kernels

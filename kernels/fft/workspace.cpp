#include <dic/kernels/workspace.hpp>

#include "fft/cufft.hpp"

namespace dic::kernels {

Workspace::Workspace(std::size_t most_bytes) : most_bytes_(most_bytes), fft_plans_(new FftPlans) {}
Workspace::~Workspace() { delete fft_plans_; }

}  // namespace dic::kernels

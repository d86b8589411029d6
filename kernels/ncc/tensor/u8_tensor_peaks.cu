#include "ncc/tensor/u8_tensor.cuh"

namespace dic::kernels::u8_tensor {

template void launch_tiling<Result::peaks>(const NccJob&, const Tiling&, const PartTasks&,
                                           const StatisticsTable&, const Scoring&, StreamHandle);

}  // namespace dic::kernels::u8_tensor

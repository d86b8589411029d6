#include "ncc/tensor/u8_tensor.cuh"

namespace dic::kernels::u8_tensor {

template void launch_cut<Result::scores>(const NccJob&, const Cut&, const PartTasks&, const StatisticsTable&,
                                         const Scoring&, StreamHandle);

}  // namespace dic::kernels::u8_tensor

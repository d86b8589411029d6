#pragma once

#include <dic/kernels/ncc.hpp>

/// The part of cuda-u8-tensor for sparse tensor cores: peaks of small references.
namespace dic::kernels {

struct StatisticsTable;

/// Queues the peaks of a job, from the statistics of its windows, if the current device can do so, the job
/// has at most 33 x 33 shifts of references of up to 32 x 128, and its matrices are parts of one image each,
/// known to the host, with rows of whole 16 bytes. Otherwise queues nothing and returns false.
bool launch_u8_sparse_peaks(const NccJob& job, const StatisticsTable& statistics, Criterion criterion,
                            Peak* peaks, StreamHandle stream);

}  // namespace dic::kernels

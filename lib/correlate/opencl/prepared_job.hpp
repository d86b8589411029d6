#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "correlate/backend.hpp"

/// What kernels read of a job beside the pixels of its search images: made on the host.
namespace dic::correlate::opencl {

/// struct Job of kernels/common.cl.
struct JobData {
  std::int32_t height = 0, width = 0, dx_min = 0, dy_min = 0, nx = 0, ny = 0;
};
JobData job_data(const Job& job);

/// struct Pair of kernels/common.cl.
struct PairData {
  std::int64_t reference = 0, window = 0;
  std::int32_t stride = 0, x0 = 0, x1 = 0, y0 = 0, y1 = 0, unused = 0;
};

/// Where the search images begin on the device, in elements: packed, one behind the other. The last value is
/// their number in all.
std::vector<std::int64_t> image_offsets(const Job& job);
std::vector<PairData> pair_data(const Job& job, PairRange pairs, const std::vector<std::int64_t>& images);

/// The references of these pairs, each of them once: elements that do not count are 0, floats are float64
/// less the offset that scoring adds again.
std::vector<std::byte> packed_references(const Job& job, PairRange pairs, ThreadPool& pool);
/// The rows of an image, packed.
std::vector<std::byte> packed_image(const ImageView& image);

}  // namespace dic::correlate::opencl

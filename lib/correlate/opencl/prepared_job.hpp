#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "correlate/backend.hpp"

/// Data that the host prepares for the kernels of a job: everything except the pixels of its search images.
namespace dic::correlate::opencl {

/// Layout of `struct Job` in kernels/common.cl.
struct JobData {
  std::int32_t height = 0, width = 0, dx_min = 0, dy_min = 0, nx = 0, ny = 0;
};
JobData job_data(const Job& job);

/// Layout of `struct Pair` in kernels/common.cl.
struct PairData {
  std::int64_t reference = 0, window = 0;
  std::int32_t stride = 0, x0 = 0, x1 = 0, y0 = 0, y1 = 0, unused = 0;
};

/// Offsets of the search images on the device, in elements; the images are packed one behind the other. The
/// last value is the number of elements of all images.
std::vector<std::int64_t> image_offsets(const Job& job);
/// The pairs for the kernels. images: from image_offsets().
std::vector<PairData> pair_data(const Job& job, PairRange pairs, const std::vector<std::int64_t>& images);

/// The references of these pairs, each once: elements outside the mask are 0; floats become float64, minus
/// the offset that scoring adds again.
std::vector<std::byte> packed_references(const Job& job, PairRange pairs, core::ThreadPool& pool);
/// The pixels of an image without gaps between its rows.
std::vector<std::byte> packed_image(const ImageView& image);

}  // namespace dic::correlate::opencl

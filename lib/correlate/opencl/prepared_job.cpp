#include "correlate/opencl/prepared_job.hpp"

#include <cstring>
#include <type_traits>

#include "correlate/cpu/scoring.hpp"
#include "correlate/window.hpp"

namespace dic::correlate::opencl {
namespace {

/// The first reference of these pairs: references never decrease from pair to pair.
std::int64_t first_reference(const Job& job, PairRange pairs) { return job.pair(pairs.begin).reference; }

template <typename T>
using Packed = std::conditional_t<std::is_floating_point_v<T>, double, T>;

template <typename T>
void pack_reference(const Job& job, std::int64_t index, Packed<T>* to) {
  const PatchPosition& at = job.reference.positions[static_cast<std::size_t>(index)];
  const Size size = job.reference.size;
  const auto reference = block_of<T>(job.reference.images[at.image], at, size);
  Block<std::uint8_t> mask;
  if (!job.mask.empty()) mask = block_of<std::uint8_t>(job.mask[at.image], at, size);
  const auto offset = centring_offset(scoring<T>().reference_sums(reference, mask), job.criterion);
  for (int i = 0; i < size.height; ++i)
    for (int j = 0; j < size.width; ++j) {
      const bool counts = !mask.data || mask.row(i)[j];
      *to++ = counts ? static_cast<Packed<T>>(reference.row(i)[j] - offset) : Packed<T>{};
    }
}

}  // namespace

JobData job_data(const Job& job) {
  return {job.reference.size.height, job.reference.size.width, job.shifts.dx_min,
          job.shifts.dy_min,         job.shifts.nx(),          job.shifts.ny()};
}

std::vector<std::int64_t> image_offsets(const Job& job) {
  std::vector<std::int64_t> offsets{0};
  for (const ImageView& image : job.search.images)
    offsets.push_back(offsets.back() + std::int64_t{image.width} * image.height);
  return offsets;
}

std::vector<PairData> pair_data(const Job& job, PairRange pairs, const std::vector<std::int64_t>& images) {
  const std::int64_t elements = std::int64_t{job.reference.size.height} * job.reference.size.width;
  const std::int64_t first = first_reference(job, pairs);
  std::vector<PairData> all;
  all.reserve(static_cast<std::size_t>(pairs.end - pairs.begin));
  for (std::int64_t k = pairs.begin; k < pairs.end; ++k) {
    const Pair pair = job.pair(k);
    const Available a = available(job, pair.window);
    const int image = job.search.positions[static_cast<std::size_t>(pair.window)].image;
    all.push_back({.reference = (pair.reference - first) * elements,
                   .window = images[static_cast<std::size_t>(image)] + a.y * a.image.width + a.x,
                   .stride = a.image.width,
                   .x0 = a.x0,
                   .x1 = a.x1,
                   .y0 = a.y0,
                   .y1 = a.y1});
  }
  return all;
}

std::vector<std::byte> packed_references(const Job& job, PairRange pairs, core::ThreadPool& pool) {
  const std::int64_t first = first_reference(job, pairs),
                     count = job.pair(pairs.end - 1).reference - first + 1;
  const std::int64_t elements = std::int64_t{job.reference.size.height} * job.reference.size.width;
  return visit_scalar(job.type, [&]<typename T>(T) {
    std::vector<std::byte> packed(static_cast<std::size_t>(count * elements) * sizeof(Packed<T>));
    auto* to = reinterpret_cast<Packed<T>*>(packed.data());
    pool.parallel_for(count, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k) pack_reference<T>(job, first + k, to + k * elements);
    });
    return packed;
  });
}

std::vector<std::byte> packed_image(const ImageView& image) {
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * size_of(image.type);
  std::vector<std::byte> packed(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y)
    std::memcpy(packed.data() + y * row_bytes, image.row<std::byte>(y), row_bytes);
  return packed;
}

}  // namespace dic::correlate::opencl

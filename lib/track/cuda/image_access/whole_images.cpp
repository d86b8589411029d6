#include "track/cuda/image_access/whole_images.hpp"

#include "track/cuda/image_access/banded_images.hpp"

namespace dic::track::cuda {

std::unique_ptr<ImageAccess> make_image_access(const RefineOptions& options, const ImageMemory& memory) {
  if (memory.in_bands()) return std::make_unique<BandedImages>(options, memory.rows);
  return std::make_unique<WholeImages>(options);
}

void WholeImages::prepare(ReferenceImage& reference, PlanesMemory& memory, const ReferenceSubsets& subsets,
                          const kernels::Stream& stream) {
  kernels::RefineReference& planes = reference.planes;
  const kernels::PlaneLayout& layout = planes.layout;
  auto* pixels = memory.pixels.reserve<kernels::ReferencePixel>(layout.elements()) + layout.origin();
  auto* rest = memory.rest.reserve<std::uint32_t>(layout.elements()) + layout.origin();
  auto* range = memory.range.reserve<kernels::GreyRange>(1);
  kernels::launch_reference_pixels(reference.frame.image, reference.roi, options_.interpolation,
                                   {pixels, rest}, range, stream.handle());
  planes.pixels = pixels;
  planes.rest = rest;
  planes.range = range;
  kernels::launch_prepare_subsets(planes, options_, {subsets.x, subsets.y, subsets.count},
                                  {subsets.prepared, subsets.matrices}, stream.handle());
}

void WholeImages::prepare_parts(const ReferenceImage& reference, const ReferenceSubsets& parts,
                                const kernels::RefineTasks& tasks, const kernels::Stream& stream) {
  kernels::launch_prepare_parts(reference.planes, options_, tasks.max_count, tasks.count_on_device,
                                {parts.prepared, parts.matrices}, stream.handle());
}

std::string WholeImages::find_peaks(SubsetSearch& search, const ReferenceImage& reference,
                                    const DeviceFrame& current, const kernels::SearchWindows& windows,
                                    bool clipped, Peak* peaks, const kernels::Stream& stream) {
  return search.peaks({reference.frame.image, current.image, reference.roi, clipped}, windows, peaks, stream);
}

void WholeImages::refine(const ReferenceImage& reference, const DeviceFrame& current,
                         const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks,
                         kernels::RefineResult* results, const kernels::Stream& stream,
                         kernels::Event* most_done) {
  kernels::launch_refine({reference.planes, current.coefficients}, options_,
                         {subsets.prepared, subsets.matrices}, tasks, results, stream, most_done);
}

PyramidSource WholeImages::pyramid_source(const DeviceFrame& frame, const kernels::Stream&) {
  return frame.image;
}

ImageView WholeImages::on_host(const DeviceFrame& frame, std::vector<std::byte>& memory,
                               const kernels::Stream& stream) {
  ImageView image = frame.image;
  const std::size_t bytes = image.row_bytes * image.height;
  memory.resize(bytes);
  kernels::download(memory.data(), image.data, bytes, stream);
  stream.synchronize("the copy of an image");
  image.data = memory.data();
  return image;
}

}  // namespace dic::track::cuda

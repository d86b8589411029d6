#include "correlate/opencl/device_sums.hpp"

#include <algorithm>
#include <dic/error.hpp>

#include "correlate/opencl/kernel_sources.hpp"
#include "correlate/opencl/prepared_job.hpp"

namespace dic::correlate::opencl {
namespace {

std::string_view source_named(std::string_view name) {
  return std::ranges::find(kernel_sources(), name, &KernelSource::name)->text;
}

}  // namespace

void DeviceSums::begin(const Job& job, const std::string& variant) {
  variant_ = &variant_named(variant);
  image_offsets_ = image_offsets(job);
  const std::size_t element = size_of(job.type), bytes = image_offsets_.back() * element;
  const std::string problem = problem_of(device_.limits(), job.shape(), bytes);
  if (!problem.empty()) throw UsageError(problem);
  seconds_ = {};
  device_.reserve(images_, bytes);
  for (std::size_t k = 0; k < job.search.images.size(); ++k)
    seconds_.upload +=
        device_.write(images_, image_offsets_[k] * element, packed_image(job.search.images[k]));
}

std::int64_t DeviceSums::pairs_at_once(const Job& job) const {
  const CorrelateShape shape = job.shape();
  const std::size_t of_pair =
      std::max({job.shifts.count() * bytes_of_sum(shape), bytes_of_reference(shape), sizeof(PairData)});
  const std::size_t room = std::min(part_bytes_, device_.limits().largest_buffer);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(room / of_pair));
}

void DeviceSums::compute(const Job& job, PairRange pairs, core::ThreadPool& pool, Sums& out) {
  const std::int64_t count = pairs.end - pairs.begin;
  out.pairs = pairs;
  out.bytes_of_sum = bytes_of_sum(job.shape());
  out.bytes.resize(static_cast<std::size_t>(count * job.shifts.count()) * out.bytes_of_sum);
  upload(references_, packed_references(job, pairs, pool));
  const std::vector<PairData> data = pair_data(job, pairs, image_offsets_);
  upload(pairs_, std::as_bytes(std::span(data)));
  device_.reserve(sums_, out.bytes.size());

  const cl_kernel one = kernel(job.shape());
  set_arguments(one, job);
  double seconds = 0;
  for (std::int64_t run = 0; run < runs_; ++run)
    seconds += device_.run(one, variant_->range(job.shifts, count));
  seconds_.kernels += seconds / static_cast<double>(runs_);
  seconds_.download += device_.read(out.bytes, sums_);
}

/// The kernel of the variant for the types of a job, compiled on first use.
cl_kernel DeviceSums::kernel(const CorrelateShape& shape) {
  const std::string options = build_options(shape);
  core::cl::Kernel& known = kernels_[std::string(variant_->name) + options];
  const std::string_view sources[] = {source_named("common.cl"), source_named(variant_->file)};
  if (!known) known = device_.compile(sources, options);
  return known.get();
}

void DeviceSums::set_arguments(cl_kernel kernel, const Job& job) const {
  const JobData data = job_data(job);
  cl_uint index = 0;
  const auto set = [&](const auto& value) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the argument for a buffer is its handle
    core::cl::check(core::cl::library().clSetKernelArg(kernel, index++, sizeof value, &value),
                    "passing arguments");
  };
  set(references_.memory.get());
  set(images_.memory.get());
  set(pairs_.memory.get());
  set(data);
  set(sums_.memory.get());
}

void DeviceSums::upload(Buffer& to, std::span<const std::byte> from) {
  device_.reserve(to, from.size());
  seconds_.upload += device_.write(to, 0, from);
}

}  // namespace dic::correlate::opencl

#include "track/cuda/device_field.hpp"

#include <algorithm>
#include <cstddef>
#include <dic/kernels/points.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "track/stopwatch.hpp"

namespace dic::track::cuda {
namespace {

using kernels::FieldArrays;

/// Lays arrays one after the other into a block; without a block it only counts.
class Layout {
 public:
  explicit Layout(void* block) : block_(static_cast<std::byte*>(block)) {}

  template <typename T>
  void place(T*& array, std::int64_t count) {
    constexpr std::size_t alignment = 256;
    if (block_) array = reinterpret_cast<T*>(block_ + bytes_);
    bytes_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* block_;
  std::size_t bytes_ = 0;
};

/// Places a field in a block. Returns its size in bytes.
std::size_t place(void* block, std::int64_t nodes, FieldBlock& field) {
  FieldArrays& arrays = field.arrays;
  Layout layout(block);
  layout.place(field.noise, 1);
  layout.place(field.measured, 1);
  for (double* FieldArrays::*array : {&FieldArrays::u, &FieldArrays::v}) layout.place(arrays.*array, nodes);
  for (float* FieldArrays::*array :
       {&FieldArrays::zncc, &FieldArrays::sigma_u, &FieldArrays::sigma_v, &FieldArrays::exx,
        &FieldArrays::eyy, &FieldArrays::exy, &FieldArrays::e1, &FieldArrays::e2, &FieldArrays::von_mises})
    layout.place(arrays.*array, nodes);
  layout.place(arrays.status, nodes);
  layout.place(arrays.iterations, nodes);
  return layout.bytes();
}

std::size_t bytes_of(std::int64_t nodes) {
  FieldBlock field;
  return place(nullptr, nodes, field);
}

/// The field as the host keeps it, in the memory of one that is not needed any more. Where it is new, most of
/// the time goes into its pages, which threads make side by side.
Field field_of(const FieldArrays& a, std::int64_t nodes, Field f) {
  StrainField& strain = f.strain;
  std::vector<std::function<void()>> copies;
  const auto copy = [&](auto& to, const auto* from) {
    copies.emplace_back([&to, from, nodes] { to.assign(from, from + nodes); });
  };
  copy(f.u, a.u), copy(f.v, a.v);
  copy(f.zncc, a.zncc), copy(f.sigma_u, a.sigma_u), copy(f.sigma_v, a.sigma_v);
  copy(strain.exx, a.exx), copy(strain.eyy, a.eyy), copy(strain.exy, a.exy);
  copy(strain.e1, a.e1), copy(strain.e2, a.e2), copy(strain.von_mises, a.von_mises);
  copy(f.status, a.status), copy(f.iterations, a.iterations);

  constexpr std::int64_t nodes_per_thread = 50'000;  // a thread costs 20 us
  ThreadPool pool(static_cast<int>(std::clamp<std::int64_t>(nodes / nodes_per_thread, 1, 8)));
  pool.parallel_for(std::ssize(copies), 1, [&](std::int64_t begin, std::int64_t, int) { copies[begin](); });
  return f;
}

}  // namespace

DeviceField::DeviceField(std::int64_t nodes, Pool<FieldMemory>::Loan memory)
    : nodes_(nodes), memory_(std::move(memory)) {
  place(memory_->on_host.reserve(bytes_of(nodes)), nodes, on_host_);
  place(memory_->on_device.reserve(bytes_of(nodes)), nodes, on_device_);
}

void DeviceField::count_measured(const kernels::Stream& stream) const {
  kernels::launch_count_measured(on_device_.arrays, nodes_, on_device_.measured, stream.handle());
  kernels::launch_store_counts(on_device_.measured, 1, on_host_.measured, stream.handle());
  memory_->counted.record(stream);
}

std::int64_t DeviceField::measured_points() const {
  memory_->counted.synchronize("the measurement of a frame");
  return *on_host_.measured;
}

void DeviceField::download(const kernels::Stream& stream) const {
  memory_->download.start(stream);
  kernels::download(memory_->on_host.data(), memory_->on_device.data(), bytes_of(nodes_), stream);
  memory_->download.stop(stream);
  memory_->done.record(stream);
}

Measured DeviceField::read(const DeviceFrame& frame, Field memory) const {
  memory_->done.synchronize("the measurement of a frame");
  const Stopwatch fetching;
  Measured measured;
  measured.field = field_of(on_host_.arrays, nodes_, std::move(memory));
  measured.noise = *on_host_.noise;
  measured.seconds.prepare = frame.seconds();
  measured.seconds.search = memory_->search.seconds();
  measured.seconds.refine = memory_->refine.seconds();
  measured.seconds.strain = memory_->strain.seconds();
  frame.add_spans(measured.spans);
  add_spans(measured.spans, memory_->begun.time(),
            {{"search", measured.seconds.search}, {"refine", measured.seconds.refine}});
  add_spans(measured.spans, memory_->judging.time(),
            {{"strain", measured.seconds.strain}, {"download", memory_->download.seconds()}});
  measured.spans.push_back(fetching.span("fetch"));
  return measured;
}

}  // namespace dic::track::cuda

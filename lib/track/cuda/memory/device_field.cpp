#include "track/cuda/memory/device_field.hpp"

#include <algorithm>
#include <cstddef>
#include <dic/kernels/points.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "track/stopwatch.hpp"

namespace dic::track::cuda {
namespace {

using kernels::FieldArrays;

/// Lays out arrays one after the other in a block; without a block it only counts bytes.
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

/// Lays out a field in a block. Returns its size in bytes.
std::size_t place(void* block, std::int64_t nodes, FieldLayout& field) {
  FieldArrays& arrays = field.arrays;
  Layout layout(block);
  layout.place(field.noise, 1);
  layout.place(field.counts, 1);
  for (double* FieldArrays::*array : {&FieldArrays::u, &FieldArrays::v}) layout.place(arrays.*array, nodes);
  for (float* FieldArrays::*array :
       {&FieldArrays::zncc, &FieldArrays::sigma_u, &FieldArrays::sigma_v, &FieldArrays::exx,
        &FieldArrays::eyy, &FieldArrays::exy, &FieldArrays::e1, &FieldArrays::e2, &FieldArrays::von_mises,
        &FieldArrays::sigma_exx, &FieldArrays::sigma_eyy, &FieldArrays::sigma_exy})
    layout.place(arrays.*array, nodes);
  layout.place(arrays.status, nodes);
  layout.place(arrays.iterations, nodes);
  return layout.bytes();
}

std::size_t bytes_of_field(std::int64_t nodes) {
  FieldLayout field;
  return place(nullptr, nodes, field);
}

/// The field in a block. Its arrays share the ownership of the block.
Field field_in(const std::shared_ptr<std::byte>& block, const FieldArrays& a,
               std::shared_ptr<const Grid> grid) {
  const std::int64_t nodes = grid->nodes();
  const auto values = [&]<typename T>(T* first) {
    return NodeValues<T>(std::shared_ptr<T[]>(block, first), nodes);
  };
  Field f = Field::without_arrays(std::move(grid));
  f.u = values(a.u), f.v = values(a.v);
  f.zncc = values(a.zncc), f.sigma_u = values(a.sigma_u), f.sigma_v = values(a.sigma_v);
  f.status = values(a.status), f.iterations = values(a.iterations);
  f.strain = {values(a.exx),       values(a.eyy),       values(a.exy),       values(a.e1),       values(a.e2),
              values(a.von_mises), values(a.sigma_exx), values(a.sigma_eyy), values(a.sigma_exy)};
  return f;
}

/// Copies a field by several threads, because most of the time is spent on touching new pages.
Field copy_of(const Field& field, core::ThreadPool& pool) {
  Field copy = Field::without_arrays(field.shared_grid());
  std::vector<std::function<void()>> tasks;
  const auto take = [&](auto... array) {
    (tasks.emplace_back([&, array] { copy.*array = field.*array; }), ...);
  };
  const auto take_strain = [&](auto... array) {
    (tasks.emplace_back([&, array] { copy.strain.*array = field.strain.*array; }), ...);
  };
  take(&Field::u, &Field::v, &Field::zncc, &Field::sigma_u, &Field::sigma_v, &Field::status,
       &Field::iterations);
  take_strain(&StrainField::exx, &StrainField::eyy, &StrainField::exy, &StrainField::e1, &StrainField::e2,
              &StrainField::von_mises, &StrainField::sigma_exx, &StrainField::sigma_eyy,
              &StrainField::sigma_exy);
  constexpr std::int64_t nodes_per_thread = 50'000;  // fewer are copied faster than a thread wakes
  const auto threads = std::clamp<std::int64_t>(field.grid().nodes() / nodes_per_thread, 1, 8);
  pool.parallel_for(
      std::ssize(tasks), 1, [&](std::int64_t begin, std::int64_t, int) { tasks[begin](); },
      static_cast<int>(threads));
  return copy;
}

}  // namespace

std::shared_ptr<std::byte> FieldBlocks::lend(Handle block) {
  constexpr int most = 8;  // a stream of usual capacity does not need more
  if (lent_->fetch_add(1) >= most) {
    --*lent_;
    return nullptr;
  }
  auto* first = static_cast<std::byte*>(block->data());
  return {first, [block = std::move(block), lent = lent_](std::byte*) mutable {
            block.reset();
            --*lent;
          }};
}

DeviceField::DeviceField(std::shared_ptr<const Grid> grid, core::ObjectPool<FieldMemory>::Handle memory,
                         FieldBlocks blocks, core::ThreadPool& pool)
    : grid_(std::move(grid)),
      memory_(std::move(memory)),
      blocks_(std::move(blocks)),
      block_(blocks_.acquire()),
      pool_(pool) {
  const std::int64_t nodes = grid_->nodes();
  place(block_->reserve(bytes_of_field(nodes)), nodes, on_host_);
  place(memory_->on_device.reserve(bytes_of_field(nodes)), nodes, on_device_);
}

void DeviceField::count_nodes(const kernels::Stream& stream) const {
  constexpr int values = sizeof(kernels::NodeCounts) / sizeof(std::int32_t);
  kernels::launch_count_nodes(on_device_.arrays, grid_->nodes(), on_device_.counts, stream.handle());
  kernels::launch_store_counts(&on_device_.counts->measured, values, &on_host_.counts->measured,
                               stream.handle());
  memory_->counted.record(stream);
}

PointCounts DeviceField::counts() const {
  memory_->counted.synchronize("the measurement of a frame");
  return {on_host_.counts->measured, on_host_.counts->lost};
}

void DeviceField::download(const kernels::Stream& stream) const {
  memory_->download.start(stream);
  kernels::download(block_->data(), memory_->on_device.data(), bytes_of_field(grid_->nodes()), stream);
  memory_->download.stop(stream);
  memory_->done.record(stream);
}

Field DeviceField::take_field() {
  if (auto block = blocks_.lend(block_)) return field_in(block, on_host_.arrays, grid_);
  const std::shared_ptr<std::byte> shared(block_, static_cast<std::byte*>(block_->data()));
  return copy_of(field_in(shared, on_host_.arrays, grid_), pool_);
}

FrameResult DeviceField::read(const DeviceFrame& frame) {
  memory_->done.synchronize("the measurement of a frame");
  FrameResult measured;
  measured.field = take_field();
  measured.noise = *on_host_.noise;
  measured.seconds.prepare = frame.seconds();
  measured.seconds.search = memory_->search.seconds();
  const double refine = memory_->refine.seconds();
  measured.seconds.refine = refine + memory_->split.seconds();
  measured.seconds.strain = memory_->strain.seconds();
  frame.add_spans(measured.spans);
  add_spans(measured.spans, memory_->search_begin.time(),
            {{"search", measured.seconds.search}, {"refine", refine}});
  add_spans(measured.spans, memory_->postprocessing_begin.time(),
            {{"strain", measured.seconds.strain}, {"download", memory_->download.seconds()}});
  return measured;
}

}  // namespace dic::track::cuda

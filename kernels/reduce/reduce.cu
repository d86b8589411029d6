#include "reduce/segments.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;

Parts parts_of(std::int64_t length) { return {length, 8192, 1024}; }

// A reduction: the value of no elements, of one element, and of two values together.

template <typename T>
struct Add {
  using Value = SumOf<T>;
  __device__ static Value none() { return 0; }
  __device__ static Value of(T element, std::int64_t) { return static_cast<Value>(element); }
  __device__ static Value both(Value a, Value b) { return a + b; }
};

/// The extreme element; of equal ones the first.
template <typename T, bool largest>
struct Pick {
  using Value = Element<T>;
  __device__ static Value none() { return {T{0}, -1}; }
  __device__ static Value of(T element, std::int64_t index) {
    return element == element ? Value{element, index} : none();
  }
  __device__ static Value both(Value a, Value b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    if (a.value == b.value) return a.index < b.index ? a : b;
    return (a.value > b.value) == largest ? a : b;
  }
};

__device__ inline double shuffled(double value, int offset) {
  return __shfl_xor_sync(0xffffffffu, value, offset);
}
__device__ inline std::int64_t shuffled(std::int64_t value, int offset) {
  return __shfl_xor_sync(0xffffffffu, value, offset);
}
__device__ inline std::uint64_t shuffled(std::uint64_t value, int offset) {
  return __shfl_xor_sync(0xffffffffu, value, offset);
}
template <typename T>
__device__ Element<T> shuffled(Element<T> value, int offset) {
  return {static_cast<T>(__shfl_xor_sync(0xffffffffu, value.value, offset)), shuffled(value.index, offset)};
}

/// The result of a team's values, in its first thread.
template <typename Reduction, int team>
__device__ typename Reduction::Value over_team(typename Reduction::Value value) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = Reduction::both(value, shuffled(value, offset));
  if constexpr (team > warp_size) {
    __shared__ typename Reduction::Value of_warp[team / warp_size];
    if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = value;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int w = 1; w < team / warp_size; ++w) value = Reduction::both(value, of_warp[w]);
    __syncthreads();  // of_warp is written again for the next task
  }
  return value;
}

/// value(begin) .. value(end - 1), taken in turn by the threads of a team, in its first thread.
template <typename Reduction, int team, typename ValueAt>
__device__ typename Reduction::Value over_range(std::int64_t begin, std::int64_t end,
                                                const ValueAt& value_at) {
  auto value = Reduction::none();
#pragma unroll 8
  for (std::int64_t i = begin + threadIdx.x % team; i < end; i += team)
    value = Reduction::both(value, value_at(i));
  return over_team<Reduction, team>(value);
}

/// A team reduces a part of a segment.
template <typename Reduction, int team, typename T>
__global__ void __launch_bounds__(threads)
    reduce_parts(const __grid_constant__ Segments<T> in, const __grid_constant__ Parts parts,
                 typename Reduction::Value* out) {
  for_each_task(in.count * parts.count, threads / team, threadIdx.x / team, [&](std::int64_t task) {
    const T* segment = in.data + task / parts.count * in.stride;
    const auto part = static_cast<int>(task % parts.count);
    const auto value =
        over_range<Reduction, team>(parts.begin(part, in.length), parts.end(part, in.length),
                                    [&](std::int64_t i) { return Reduction::of(segment[i], i); });
    if (threadIdx.x % team == 0) out[task] = value;
  });
}

/// A block reduces what was found in the parts of a segment.
template <typename Reduction>
__global__ void __launch_bounds__(threads)
    combine_parts(std::int64_t segments, int parts, const typename Reduction::Value* of_part,
                  typename Reduction::Value* out) {
  for_each_task(segments, 1, 0, [&](std::int64_t task) {
    const auto value =
        over_range<Reduction, threads>(0, parts, [&](std::int64_t i) { return of_part[task * parts + i]; });
    if (threadIdx.x == 0) out[task] = value;
  });
}

template <typename Reduction, typename T>
void reduce(const Segments<T>& in, typename Reduction::Value* out, void* workspace, StreamHandle stream) {
  if (in.count == 0) return;
  const Parts parts = parts_of(in.length);
  const std::int64_t tasks = in.count * parts.count;
  const bool whole = parts.count == 1;
  auto* const found = whole ? out : static_cast<typename Reduction::Value*>(workspace);
  constexpr std::int64_t longest_for_a_warp = 2048;
  if (in.length <= longest_for_a_warp)
    reduce_parts<Reduction, warp_size>
        <<<grid_size(tasks, threads / warp_size), threads, 0, stream>>>(in, parts, found);
  else
    reduce_parts<Reduction, threads><<<grid_size(tasks, 1), threads, 0, stream>>>(in, parts, found);
  if (!whole)
    combine_parts<Reduction>
        <<<grid_size(in.count, 1), threads, 0, stream>>>(in.count, parts.count, found, out);
  check_launch("reduction (" + std::to_string(in.count) + " segments of " + std::to_string(in.length) +
               " elements)");
}

}  // namespace

template <typename T>
std::size_t reduction_workspace_bytes(const Segments<T>& in) {
  return std::max(sizeof(Element<T>), sizeof(SumOf<T>)) * static_cast<std::size_t>(in.count) *
         parts_of(in.length).count;
}
template <typename T>
void launch_sums(const Segments<T>& in, SumOf<T>* sums, void* workspace, StreamHandle stream) {
  reduce<Add<T>>(in, sums, workspace, stream);
}
template <typename T>
void launch_minima(const Segments<T>& in, Element<T>* minima, void* workspace, StreamHandle stream) {
  reduce<Pick<T, false>>(in, minima, workspace, stream);
}
template <typename T>
void launch_maxima(const Segments<T>& in, Element<T>* maxima, void* workspace, StreamHandle stream) {
  reduce<Pick<T, true>>(in, maxima, workspace, stream);
}

#define DIC_INSTANTIATE(T)                                                           \
  template std::size_t reduction_workspace_bytes(const Segments<T>&);                \
  template void launch_sums(const Segments<T>&, SumOf<T>*, void*, StreamHandle);     \
  template void launch_minima(const Segments<T>&, Element<T>*, void*, StreamHandle); \
  template void launch_maxima(const Segments<T>&, Element<T>*, void*, StreamHandle);
DIC_INSTANTIATE(std::uint8_t)
DIC_INSTANTIATE(std::uint16_t)
DIC_INSTANTIATE(std::int32_t)
DIC_INSTANTIATE(float)
DIC_INSTANTIATE(double)
#undef DIC_INSTANTIATE

}  // namespace dic::kernels

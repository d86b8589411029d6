#include "reduce/segments.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;

Parts parts_of(std::int64_t length) { return {length, 8192, 1024}; }

// A reduction defines the value of no elements, of a value and a later element, and of two values.

template <typename T>
struct Add {
  using Value = SumOf<T>;
  __device__ static Value none() { return 0; }
  __device__ static void take(Value& sum, T element, int) { sum += static_cast<Value>(element); }
  __device__ static Value both(Value a, Value b) { return a + b; }
  __device__ static Value moved(Value sum, std::int64_t) { return sum; }
};

/// Picks the extreme element, the first among equal ones.
template <typename T, bool largest>
struct Pick {
  using Value = Element<T>;
  __device__ static Value none() { return {T{0}, -1}; }
  __device__ static void take(Value& best, T element, int index) {
    const bool better = largest ? element > best.value : element < best.value;
    if (best.index < 0 ? element == element : better) best = {element, index};
  }
  __device__ static Value both(Value a, Value b) {
    const bool a_is_better = a.value == b.value ? a.index < b.index : (a.value > b.value) == largest;
    return b.index < 0 || (a.index >= 0 && a_is_better) ? a : b;
  }
  /// Returns the same element with its index counted from `begin` elements earlier.
  __device__ static Value moved(Value best, std::int64_t begin) {
    return best.index < 0 ? best : Value{best.value, best.index + begin};
  }
};

template <typename T>
__device__ T shuffled(T value, int offset, unsigned lanes) {
  return static_cast<T>(__shfl_xor_sync(lanes, value, offset));
}
__device__ inline std::int64_t shuffled(std::int64_t value, int offset, unsigned lanes) {
  return __shfl_xor_sync(lanes, static_cast<long long>(value), offset);
}
template <typename T>
__device__ Element<T> shuffled(Element<T> value, int offset, unsigned lanes) {
  return {shuffled(value.value, offset, lanes), shuffled(value.index, offset, lanes)};
}

/// Reduces the values of a team of threads: a part of a warp, a warp or a block. The first thread of the team
/// gets the result.
template <typename Reduction, int team>
__device__ typename Reduction::Value over_team(typename Reduction::Value value) {
  constexpr int lanes_of_team = team < warp_size ? team : warp_size;
  const int first_lane = threadIdx.x % warp_size / lanes_of_team * lanes_of_team;
  const unsigned lanes = (0xffffffffu >> (warp_size - lanes_of_team)) << first_lane;
#pragma unroll
  for (int offset = lanes_of_team / 2; offset > 0; offset /= 2)
    value = Reduction::both(value, shuffled(value, offset, lanes));
  if constexpr (team > warp_size) {
    __shared__ typename Reduction::Value warps[team / warp_size];
    if (threadIdx.x % warp_size == 0) warps[threadIdx.x / warp_size] = value;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int w = 1; w < team / warp_size; ++w) value = Reduction::both(value, warps[w]);
    __syncthreads();  // the next task writes `warps` again
  }
  return value;
}

/// Reduces a part of a segment with each team.
template <typename Reduction, int team, typename T>
__global__ void __launch_bounds__(threads)
    reduce_parts(const __grid_constant__ Segments<T> in, const __grid_constant__ Parts parts,
                 typename Reduction::Value* out) {
  for_each_task(in.count * parts.count, threads / team, threadIdx.x / team, [&](std::int64_t task) {
    const std::int64_t segment = parts.count == 1 ? task : task / parts.count;
    const auto part = static_cast<int>(task - segment * parts.count);
    const std::int64_t begin = parts.begin(part, in.length);
    const auto length = static_cast<int>(parts.end(part, in.length) - begin);
    const T* first = in.data + segment * in.stride + begin;
    auto value = Reduction::none();
#pragma unroll 8
    for (int i = threadIdx.x % team; i < length; i += team) Reduction::take(value, first[i], i);
    value = over_team<Reduction, team>(Reduction::moved(value, begin));
    if (threadIdx.x % team == 0) out[task] = value;
  });
}

/// Combines the results of the parts of a segment with each block.
template <typename Reduction>
__global__ void __launch_bounds__(threads)
    combine_parts(std::int64_t segments, int parts, const typename Reduction::Value* part_values,
                  typename Reduction::Value* out) {
  for_each_task(segments, 1, 0, [&](std::int64_t task) {
    auto value = Reduction::none();
    for (int i = threadIdx.x; i < parts; i += threads)
      value = Reduction::both(value, part_values[task * parts + i]);
    value = over_team<Reduction, threads>(value);
    if (threadIdx.x == 0) out[task] = value;
  });
}

template <typename Reduction, int team, typename T>
void launch_parts(const Segments<T>& in, const Parts& parts, typename Reduction::Value* out,
                  StreamHandle stream) {
  const unsigned blocks = grid_size(in.count * parts.count, threads / team);
  reduce_parts<Reduction, team><<<blocks, threads, 0, stream>>>(in, parts, out);
}

template <typename Reduction, typename T>
void reduce(const Segments<T>& in, typename Reduction::Value* out, void* workspace, StreamHandle stream) {
  if (in.count == 0) return;
  const Parts parts = parts_of(in.length);
  const std::int64_t tasks = in.count * parts.count;
  const bool whole = parts.count == 1;
  auto* const found = whole ? out : static_cast<typename Reduction::Value*>(workspace);
  if (in.length <= 256)
    launch_parts<Reduction, 8>(in, parts, found, stream);
  else if (in.length <= 2048)
    launch_parts<Reduction, warp_size>(in, parts, found, stream);
  else
    launch_parts<Reduction, threads>(in, parts, found, stream);
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

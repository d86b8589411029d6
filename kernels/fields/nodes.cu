#include "fields/nodes.cuh"

namespace dic::kernels {
namespace {

__global__ void __launch_bounds__(word_threads)
    find_usable(const std::uint8_t* inside, const Status* status, const __grid_constant__ NodeSet usable) {
  for_each_word_node(usable, [&](const WordNode& node) {
    const bool is_usable = node.i < usable.nx && inside[node.index] != 0 && status[node.index] == Status::ok;
    const std::uint32_t word = __ballot_sync(all_lanes, is_usable);
    if (threadIdx.x % warp_size == 0) usable.words[node.word] = word;
  });
}

}  // namespace

std::size_t fields_workspace_bytes(const DeviceGrid& grid) {
  return 3 * sizeof(std::uint32_t) * NodeSet(grid, nullptr).size() + sizeof(std::int32_t) +
         (sizeof(std::int32_t) + sizeof(strain::Squares)) * static_cast<std::size_t>(grid.nodes());
}

void launch_find_usable(const DeviceGrid& grid, const FieldArrays& field, const FieldsMemory& memory,
                        StreamHandle stream) {
  find_usable<<<word_blocks(memory.usable), word_threads, 0, stream>>>(grid.inside, field.status,
                                                                       memory.usable);
}

}  // namespace dic::kernels

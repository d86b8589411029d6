#pragma once

#include <dic/kernels/fields.hpp>
#include <dic/shared/strain.hpp>

#include "common/launch.cuh"

/// Sets of nodes of a grid, one bit per node.
namespace dic::kernels {

/// A set of nodes. Rows are padded to whole words; the warp that has the nodes of a word writes it.
struct NodeSet {
  std::uint32_t* words;
  int nx, ny, row_words;

  NodeSet(const DeviceGrid& grid, void* memory)
      : words(static_cast<std::uint32_t*>(memory)),
        nx(grid.nx),
        ny(grid.ny),
        row_words((nx + warp_size - 1) / warp_size) {}
  std::int64_t size() const { return std::int64_t{row_words} * ny; }

  /// Word w of row j; 0 outside the grid.
  __device__ std::uint32_t word(int w, int j) const {
    return w >= 0 && w < row_words && j >= 0 && j < ny ? words[j * row_words + w] : 0;
  }
  __device__ bool holds(int i, int j) const { return word(i >> 5, j) >> (i & 31) & 1; }
};
static_assert(warp_size == 32);

/// Workspace of the functions of <dic/kernels/fields.hpp>.
struct FieldsMemory {
  NodeSet usable;     ///< nodes that are inside and `ok`
  NodeSet trusted;    ///< outlier test: usable nodes that are not suspects
  NodeSet clustered;  ///< strain: nodes that are not usable and touch another such node (8 neighbours)
  std::int32_t* list_length;
  std::int32_t* list;          ///< strain: indices of nodes whose windows need a search, in any order
  strain::Squares* flattened;  ///< strain: what windows flatten, NaN without a strain

  FieldsMemory(const DeviceGrid& grid, void* workspace)
      : usable(grid, workspace),
        trusted(grid, usable.words + usable.size()),
        clustered(grid, trusted.words + trusted.size()),
        list_length(reinterpret_cast<std::int32_t*>(clustered.words + clustered.size())),
        list(list_length + 1),
        flattened(reinterpret_cast<strain::Squares*>(list + grid.nodes())) {}
};

/// Queues finding the set memory.usable.
void launch_find_usable(const DeviceGrid& grid, const FieldArrays& field, const FieldsMemory& memory,
                        StreamHandle stream);

/// A node of the word that a warp works on.
struct WordNode {
  int word, i, j;
  int index;  ///< index in the arrays of the field

  __device__ WordNode(const NodeSet& set, std::int64_t word_in_set)
      : word(static_cast<int>(word_in_set)),
        i(word % set.row_words * warp_size + static_cast<int>(threadIdx.x) % warp_size),
        j(word / set.row_words),
        index(j * set.nx + i) {}
};

constexpr int word_threads = 128;

/// Calls body(WordNode) for all nodes of the words of a set, including those beyond the end of a row; one
/// warp per word.
template <typename Body>
__device__ void for_each_word_node(const NodeSet& set, Body&& body) {
  for_each_task(std::int64_t{set.row_words} * set.ny, word_threads / warp_size, warp_index(),
                [&](std::int64_t word) { body(WordNode(set, word)); });
}
inline unsigned word_blocks(const NodeSet& set) { return grid_size(set.size(), word_threads / warp_size); }

/// "strain (grid 806x802)" for messages.
inline std::string describe(const char* what, const DeviceGrid& grid) {
  return std::string(what) + " (grid " + std::to_string(grid.nx) + "x" + std::to_string(grid.ny) + ")";
}

}  // namespace dic::kernels

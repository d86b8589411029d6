#pragma once

namespace dic {

/// Gives pages back where a MemoryLimit is passed. For loops that make pages in many threads.
void make_room_in_memory();

}  // namespace dic

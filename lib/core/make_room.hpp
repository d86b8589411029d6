#pragma once

namespace dic {

/// Gives pages back where a MemoryLimit is passed. For loops of many threads, before each piece that reads or
/// writes some megabytes: a page of an image that is read brings 15 others with it.
void make_room_in_memory();

}  // namespace dic

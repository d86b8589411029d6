#pragma once

namespace dic::core {

/// Gives pages back to the system while a MemoryLimit is exceeded. Loops of many threads call it before each
/// piece that reads or writes some megabytes: reading one page of an image brings in 15 others.
void make_room_in_memory();

}  // namespace dic::core

/// Input: a table of loads.
#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <functional>

#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dic::MemoryFile file({data, size});
  for (const char* column : {"", "force"}) {
    try {
      const dic::LoadTable table = dic::read_loads(file.path(), column);
      dic::require(!table.keys.empty() && table.keys.size() == table.loads.size());
      dic::require(std::ranges::adjacent_find(table.keys, std::ranges::greater_equal()) == table.keys.end());
      dic::require(std::ranges::all_of(table.loads, [](double load) { return std::isfinite(load); }));
    } catch (const dic::FileError&) {
    }
  }
  return 0;
}

#include "io/text_rows.hpp"

#include <algorithm>
#include <vector>

namespace dic::io {

void write_rows(PendingText& file, std::int64_t rows, core::ThreadPool& threads, const FormatRows& format) {
  constexpr std::int64_t kBlock = 1024;         // rows
  constexpr std::int64_t kBlocksOfAThread = 2;  // in memory at a time
  const std::int64_t blocks = (rows + kBlock - 1) / kBlock;
  std::vector<std::string> texts(std::min(blocks, kBlocksOfAThread * threads.size()));
  for (std::int64_t first = 0; first < blocks; first += std::ssize(texts)) {
    const std::int64_t count = std::min(std::ssize(texts), blocks - first);
    threads.parallel_for(count, 1, [&](std::int64_t k, std::int64_t, int) {
      const std::int64_t begin = (first + k) * kBlock;
      texts[k].clear();
      format(begin, std::min(rows, begin + kBlock), texts[k]);
    });
    for (std::int64_t k = 0; k < count; ++k) file.write(texts[k]);
  }
}

}  // namespace dic::io

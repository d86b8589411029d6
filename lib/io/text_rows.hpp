#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <functional>
#include <string>

#include "core/parallel.hpp"
#include "io/pending_file.hpp"

namespace dic::io {

/// Appends the rows [begin, end) of a table to a text.
using FormatRows = std::function<void(std::int64_t begin, std::int64_t end, std::string& text)>;

/// Writes a table of `rows` rows. The threads format blocks of rows, which go to the file in order:
/// formatting a number takes several times as long as writing it. format: called by several threads at the
/// same time. Throws FileError.
DIC_INTERNAL_API void write_rows(PendingText& file, std::int64_t rows, core::ThreadPool& threads,
                                 const FormatRows& format);

}  // namespace dic::io

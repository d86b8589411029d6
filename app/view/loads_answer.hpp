#pragma once

#include <dic/result.hpp>

#include "view/json.hpp"

namespace dic::app {

/// The loads of a table, as the page asks for them: {"name": of the file, "text", "column": a heading or
/// null, "area": cross section in mm2, 0 for none}. Answers {"columns": the headings, "column", "title",
/// "values": one per frame, null where there is none, "note"}; {"columns", "problem"} where no values can be
/// told until another column or area is chosen. Throws FileError if the text is no table.
Json loads_answer(const Result& result, const Json& asked);

}  // namespace dic::app

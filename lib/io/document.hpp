#pragma once

#include <dic/export.hpp>
#include <string>

namespace dic::io {

/// The document with `text` between its lines "<!-- report: NAME -->" and "<!-- end of report -->". Throws
/// UsageError where it has no such lines.
DIC_INTERNAL_API std::string insert_report(const std::string& document, const std::string& name,
                                           const std::string& text);

}  // namespace dic::io

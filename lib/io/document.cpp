#include "io/document.hpp"

#include <dic/error.hpp>

namespace dic::io {

std::string insert_report(const std::string& document, const std::string& name, const std::string& text) {
  const std::string begin = "<!-- report: " + name + " -->\n", end = "<!-- end of report -->";
  const std::size_t first = document.find(begin), last = document.find(end, first);
  if (first == std::string::npos || last == std::string::npos)
    throw UsageError("The document has no lines \"<!-- report: " + name + " -->\" and \"" + end +
                     "\": add them where the tables belong.");
  return document.substr(0, first + begin.size()) + text + document.substr(last);
}

}  // namespace dic::io

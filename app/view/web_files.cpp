#include "view/web_files.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <vector>

#include "view/json.hpp"

namespace dic::app {
namespace {

/// kFieldArrays as a JavaScript module: arrays that menus offer, each with its name, label, unit and role.
std::string schema_module() {
  Json arrays = Json::array();
  for (const FieldArray& array : kFieldArrays)
    if (!array.label.empty())
      arrays.push_back({{"name", array.name},
                        {"label", array.label},
                        {"unit", to_string(array.unit)},
                        {"role", to_string(array.role)}});
  return "export const ARRAYS = " + dump(arrays) + ";\n";
}

}  // namespace

std::span<const WebFile> web_files() {
  static const std::string schema = schema_module();
  static const std::vector<WebFile> files = [] {
    const auto embedded = embedded_files();
    std::vector<WebFile> all(embedded.begin(), embedded.end());
    all.push_back({"schema.js", schema});
    return all;
  }();
  return files;
}

std::string_view web_file(std::string_view name) {
  const auto files = web_files();
  const auto found = std::ranges::find(files, name, &WebFile::name);
  if (found == files.end()) throw Error("There is no " + std::string(name) + ".");
  return found->content;
}

std::string media_type(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/html; charset=utf-8";
}

std::string page_with(std::string_view head, std::string_view scripts) {
  std::string page(web_file("index.html"));
  const auto replace = [&](std::string_view mark, std::string_view text) {
    page.replace(page.find(mark), mark.size(), text);
  };
  replace("<!--head-->", head);
  replace("<!--scripts-->", scripts);
  return page;
}

}  // namespace dic::app

#include "view/web_files.hpp"

#include <algorithm>
#include <dic/error.hpp>

namespace dic::app {

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

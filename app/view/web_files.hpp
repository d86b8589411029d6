#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dic::app {

/// A file of app/view/page/, or Chart.js, as the program carries it.
struct WebFile {
  std::string_view name;     ///< "main.js"
  std::string_view content;  ///< bytes
};

/// All of them; made at build time (cmake/EmbedFiles.cmake).
std::span<const WebFile> web_files();

/// Throws Error where there is none of this name.
std::string_view web_file(std::string_view name);
/// Media type by the ending: "text/css; charset=utf-8".
std::string media_type(std::string_view name);

/// The page with these elements in its head and at its end.
std::string page_with(std::string_view head, std::string_view scripts);

}  // namespace dic::app

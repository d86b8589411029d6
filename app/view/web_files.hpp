#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dic::app {

/// A file of the page, which is part of the program.
struct WebFile {
  std::string_view name;     ///< "main.js"
  std::string_view content;  ///< bytes
};

/// The files of app/view/page/ and Chart.js; made at build time (cmake/EmbedFiles.cmake).
std::span<const WebFile> embedded_files();
/// The embedded files and schema.js, the module that tells the page which arrays a result has.
std::span<const WebFile> web_files();

/// The content of a file. Throws Error for an unknown name.
std::string_view web_file(std::string_view name);
/// The media type that belongs to the ending of a name: "text/css; charset=utf-8".
std::string media_type(std::string_view name);

/// The page with these elements in its head and at its end.
std::string page_with(std::string_view head, std::string_view scripts);

}  // namespace dic::app

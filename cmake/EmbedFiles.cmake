# cmake -D OUTPUT=FILE.cpp -D FILES="NAME=PATH;..." -P EmbedFiles.cmake: a source file with the bytes of files, for
# app/view/web_files.hpp.
set(source "#include \"view/web_files.hpp\"\n\nnamespace dic::app {\nnamespace {\n\n")
set(entries "")
set(number 0)
foreach(file IN LISTS FILES)
  string(REGEX REPLACE "=.*" "" name "${file}")
  string(REGEX REPLACE "^[^=]*=" "" path "${file}")
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND source "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
  string(APPEND entries "    file(\"${name}\", kFile${number}),\n")
  math(EXPR number "${number} + 1")
endforeach()
string(APPEND source "
/// Without the zero at its end.
template <std::size_t size>
WebFile file(std::string_view name, const unsigned char (&bytes)[size]) {
  return {name, {reinterpret_cast<const char*>(bytes), size - 1}};
}

const WebFile kFiles[] = {
${entries}};

}  // namespace

std::span<const WebFile> web_files() { return kFiles; }

}  // namespace dic::app
")
file(WRITE "${OUTPUT}" "${source}")

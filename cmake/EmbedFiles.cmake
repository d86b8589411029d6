# Run by dic_embed_files of DicOptions.cmake: writes OUTPUT with the bytes of FILES ("NAME=PATH;..."), for HEADER.
set(source "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\nnamespace {\n\n")
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
${TYPE} file(std::string_view name, const unsigned char (&bytes)[size]) {
  return {name, {reinterpret_cast<const char*>(bytes), size - 1}};
}

const ${TYPE} kFiles[] = {
${entries}};

}  // namespace

std::span<const ${TYPE}> ${FUNCTION}() { return kFiles; }

}  // namespace ${NAMESPACE}
")
file(WRITE "${OUTPUT}" "${source}")

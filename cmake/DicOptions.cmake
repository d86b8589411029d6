# Flags that every target of the project shares, and the helper that declares a room.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A shared libdic exports what DIC_API marks (lib/shared/include/dic/shared/export.hpp).
foreach(language C CXX CUDA)
  set(CMAKE_${language}_VISIBILITY_PRESET hidden)
endforeach()
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(dic_flags INTERFACE)
if(NOT BUILD_SHARED_LIBS)
  target_compile_definitions(dic_flags INTERFACE DIC_STATIC)
endif()

# Instruction sets that vectorized code (Highway) is compiled for; the best one is chosen at run time. Each takes a minute
# of compiler time. all: SSE4, AVX2, AVX-512, NEON. native: only the best that this machine has, beside the baseline.
set(DIC_SIMD_TARGETS all CACHE STRING "Instruction sets of vectorized code: all, native, avx2 or avx512")
set_property(CACHE DIC_SIMD_TARGETS PROPERTY STRINGS all native avx2 avx512)
set(simd_targets ${DIC_SIMD_TARGETS})
if(simd_targets STREQUAL "native")
  set(simd_targets all)
  if(EXISTS /proc/cpuinfo)
    file(READ /proc/cpuinfo cpuinfo)
    if(cpuinfo MATCHES "avx512vl")
      set(simd_targets avx512)
    elseif(cpuinfo MATCHES "avx2")
      set(simd_targets avx2)
    endif()
  endif()
endif()
if(simd_targets MATCHES "^avx(2|512)$")
  string(TOUPPER ${simd_targets} simd_targets)
  target_compile_definitions(dic_flags INTERFACE DIC_ONLY_${simd_targets})
elseif(NOT simd_targets STREQUAL "all")
  message(FATAL_ERROR "DIC_SIMD_TARGETS is \"${DIC_SIMD_TARGETS}\": use all, native, avx2 or avx512.")
endif()

target_compile_options(dic_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-psabi>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${DIC_WARNINGS_AS_ERRORS}>>:-Werror>)
# Highway 1.0 compiles for NEON with AES. GCC forgets that in functions that it makes by itself, and then does not inline.
# Nothing here uses AES, so processors without it run this, too.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  target_compile_options(dic_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=armv8-a+crypto>)
endif()

if(DIC_SANITIZE)
  target_compile_options(dic_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DIC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(dic_flags INTERFACE -fsanitize=${DIC_SANITIZE})
endif()

if(DIC_BUILD_FUZZERS)  # what the fuzzer learns from an input
  target_compile_options(dic_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# Where a source file has little of its own, half of its compile time goes into these headers: the rooms share them, compiled once.
# Include what you use all the same: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON compiles without them.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/headers.cpp CONTENT "")
add_library(dic_headers OBJECT ${PROJECT_BINARY_DIR}/generated/headers.cpp)
target_link_libraries(dic_headers PRIVATE dic_flags)
target_precompile_headers(dic_headers PRIVATE
  <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <memory> <optional> <span> <string> <utility> <vector>)
# GCC 12 sees push_back("...") read beyond the end of the text where std::vector was precompiled.
add_library(dic_with_headers INTERFACE)
target_compile_options(dic_with_headers INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow -Wno-restrict>)

# Mathematics and plain data that CPU and GPU share, as <dic/shared/...>: headers only, below all rooms and kernels/.
set(DIC_SHARED_INCLUDE_DIR ${PROJECT_SOURCE_DIR}/lib/shared/include)
# Those that public headers include: installed with them.
set(DIC_PUBLIC_SHARED_HEADERS
  correlation.hpp enum_names.hpp error.hpp export.hpp field_options.hpp gradient_noise.hpp host_device.hpp image_view.hpp refine_options.hpp
  shape_parameters.hpp status.hpp subset_part.hpp subset_weights.hpp)
list(TRANSFORM DIC_PUBLIC_SHARED_HEADERS PREPEND ${DIC_SHARED_INCLUDE_DIR}/dic/shared/)

include(DicUnity)

# dic_add_room(NAME SOURCES ... [CUDA ... STUB ...] [OPENCL ... OPENCL_STUB ...] [USES ...] [LINK ...]): one object library per
# room of lib/; libdic is made of them. CUDA: sources that see the kernels; STUB: what stands in for them in builds without CUDA.
# OPENCL, OPENCL_STUB: the same of OpenCL. USES: the rooms whose functions it calls, so that who links this room gets them too
# (dic_rooms_with_uses).
# Rooms include each other as "room/header.hpp" from lib/ and public headers as <dic/...>.
function(dic_add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES;LINK;CUDA;STUB;OPENCL;OPENCL_STUB" ${ARGN})
  set(alone ${ROOM_CUDA} ${ROOM_STUB} ${ROOM_OPENCL_STUB})
  if(DIC_WITH_CUDA AND ROOM_CUDA)
    list(APPEND ROOM_SOURCES ${ROOM_CUDA})
    list(APPEND ROOM_LINK dic_kernels)
  else()
    list(APPEND ROOM_SOURCES ${ROOM_STUB})
  endif()
  if(DIC_WITH_OPENCL AND ROOM_OPENCL)
    list(APPEND ROOM_SOURCES ${ROOM_OPENCL})
    list(APPEND ROOM_LINK ${CMAKE_DL_LIBS})
  else()
    list(APPEND ROOM_SOURCES ${ROOM_OPENCL_STUB})
  endif()
  add_library(dic_${name} OBJECT ${ROOM_SOURCES})
  target_include_directories(dic_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/lib/include ${DIC_SHARED_INCLUDE_DIR} ${PROJECT_BINARY_DIR}/generated)
  if(DIC_WITH_OPENCL AND ROOM_OPENCL)
    target_include_directories(dic_${name} SYSTEM PUBLIC ${DIC_OPENCL_INCLUDE_DIR})
  endif()
  target_link_libraries(dic_${name} PRIVATE dic_flags dic_with_headers PUBLIC Threads::Threads ${ROOM_LINK})
  target_precompile_headers(dic_${name} REUSE_FROM dic_headers)
  if(DIC_UNITY_ROOMS)
    dic_join_sources(${name} ${alone})
  endif()
  set_property(GLOBAL APPEND PROPERTY DIC_ROOMS dic_${name})
  set_property(GLOBAL PROPERTY DIC_USES_OF_${name} ${ROOM_USES})
endfunction()

# dic_export_only_marked(TARGET): a shared library keeps the code of std:: and of other libraries that the compiler made in it.
function(dic_export_only_marked target)
  if(NOT WIN32 AND NOT APPLE)
    set(script ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
endfunction()

# dic_rooms_with_uses(RESULT ROOM...): the targets of these rooms and of all rooms that they use, directly or not. CMake does not
# pass on the objects of an object library to who links a user of it.
function(dic_rooms_with_uses result)
  set(found "")
  set(rooms ${ARGN})
  while(rooms)
    list(POP_FRONT rooms room)
    if(NOT dic_${room} IN_LIST found)
      list(APPEND found dic_${room})
      get_property(uses GLOBAL PROPERTY DIC_USES_OF_${room})
      list(APPEND rooms ${uses})
    endif()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# dic_embed_files(OUTPUT HEADER ... NAMESPACE ... TYPE ... FUNCTION ... FILES NAME=PATH ...): makes the source file OUTPUT with the bytes
# of files. HEADER declares TYPE, an aggregate of name and bytes (std::string_view), and FUNCTION, which returns all of them as a span.
function(dic_embed_files output)
  cmake_parse_arguments(EMBED "" "HEADER;NAMESPACE;TYPE;FUNCTION" "FILES" ${ARGN})
  list(TRANSFORM EMBED_FILES REPLACE "^[^=]*=" "" OUTPUT_VARIABLE paths)
  set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D HEADER=${EMBED_HEADER} -D NAMESPACE=${EMBED_NAMESPACE} -D TYPE=${EMBED_TYPE}
      -D FUNCTION=${EMBED_FUNCTION} -D "FILES=${EMBED_FILES}" -P ${script}
    DEPENDS ${paths} ${script}
    COMMENT "Embedding files for ${EMBED_HEADER}" VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Flags that every target of the project shares, and the helper that declares a room.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(dic_flags INTERFACE)
target_compile_options(dic_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-psabi>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${DIC_WARNINGS_AS_ERRORS}>>:-Werror>)
if(DIC_SANITIZE)
  target_compile_options(dic_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DIC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_compile_definitions(dic_flags INTERFACE DIC_FEW_SIMD_TARGETS=1)
  target_link_options(dic_flags INTERFACE -fsanitize=${DIC_SANITIZE})
endif()

# dic_add_room(NAME SOURCES ... [CUDA ... STUB ...] [LINK ...]): one object library per room of lib/; libdic is made of
# them. CUDA: sources that see the kernels; STUB: what stands in for them in builds without CUDA.
# Rooms include each other as "room/header.hpp" from lib/ and public headers as <dic/...>.
function(dic_add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINK;CUDA;STUB" ${ARGN})
  if(DIC_WITH_CUDA AND ROOM_CUDA)
    list(APPEND ROOM_SOURCES ${ROOM_CUDA})
    list(APPEND ROOM_LINK dic_kernels)
  else()
    list(APPEND ROOM_SOURCES ${ROOM_STUB})
  endif()
  add_library(dic_${name} OBJECT ${ROOM_SOURCES})
  target_include_directories(dic_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/lib/include ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(dic_${name} PRIVATE dic_flags PUBLIC Threads::Threads ${ROOM_LINK})
  set_property(GLOBAL APPEND PROPERTY DIC_ROOMS dic_${name})
endfunction()

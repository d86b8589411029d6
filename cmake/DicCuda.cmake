# Decides whether the CUDA backend is built (DIC_WITH_CUDA), and its compiler flags (target dic_cuda_flags).

set(DIC_WITH_CUDA OFF)
set(wants_cuda ${DIC_CUDA})
if(DIC_CUDA STREQUAL "AUTO")
  set(wants_cuda ON)
  if(SKBUILD AND NOT DIC_PACKAGE_FOLDER)  # `pip install .` builds for this machine; kernels for all architectures take many minutes
    if(EXISTS /proc/driver/nvidia/version)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      message(STATUS "Building for the CPU: no NVIDIA driver was found. -Ccmake.define.DIC_CUDA=ON builds the CUDA backend all the same.")
      set(wants_cuda OFF)
    endif()
  endif()
endif()
if(wants_cuda)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX REPLACE ".*release ([0-9.]+).*" "\\1" nvcc_version "${nvcc_version}")
    find_package(CUDAToolkit QUIET)
    if(nvcc_version VERSION_LESS 13 OR NOT CUDAToolkit_FOUND)
      message(STATUS "${CMAKE_CUDA_COMPILER} is not used: the CUDA backend needs the CUDA toolkit 13 or newer")
      set(CMAKE_CUDA_COMPILER NOTFOUND)
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # 80 and 90a as machine code, and PTX of 80 for whatever comes later.
      set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
    endif()
    enable_language(CUDA)
    set(DIC_WITH_CUDA ON)

    # CMake 3.25 does not know how nvcc 13 is told to take C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()

    add_library(dic_cuda_flags INTERFACE)
    target_compile_options(dic_cuda_flags INTERFACE
      # CMake passes the visibility of inline functions to C++ alone.
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-fvisibility-inlines-hidden>
      # The machine code of all architectures is a fifth as large; each file is unpacked when a kernel of it first runs.
      $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>
      # Arrays that must stay in registers do: a spill or local memory is a warning.
      $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<BOOL:$<TARGET_PROPERTY:DIC_LOCAL_MEMORY>>>>:-Xptxas=-warn-spills,-warn-lmem-usage>
      $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${DIC_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>)
  elseif(NOT DIC_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DIC_CUDA=ON, but no CUDA compiler of version 13 was found: install the CUDA toolkit (13 or newer) "
                        "and put nvcc on PATH, or configure with -DDIC_CUDA=OFF.")
  endif()
endif()
message(STATUS "CUDA backend: ${DIC_WITH_CUDA}")

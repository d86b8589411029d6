# Decides whether the CUDA backend is built: DIC_WITH_CUDA.

set(DIC_WITH_CUDA OFF)
if(DIC_CUDA STREQUAL "AUTO" OR DIC_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # 80 and 90a as machine code, and PTX of 80 for whatever comes later.
      set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(DIC_WITH_CUDA ON)
  elseif(NOT DIC_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "DIC_CUDA=ON, but no CUDA compiler was found: install the CUDA toolkit (13 or newer) "
                        "and put nvcc on PATH, or configure with -DDIC_CUDA=OFF.")
  endif()
endif()
message(STATUS "CUDA backend: ${DIC_WITH_CUDA}")

# Decides whether the OpenCL backend is built (DIC_WITH_OPENCL). It needs the headers alone: the library is loaded when it is used.
set(DIC_WITH_OPENCL OFF)
if(DIC_OPENCL STREQUAL "AUTO" OR DIC_OPENCL)
  find_path(DIC_OPENCL_INCLUDE_DIR CL/cl.h DOC "Folder of CL/cl.h")
  if(DIC_OPENCL_INCLUDE_DIR)
    set(DIC_WITH_OPENCL ON)
  elseif(NOT DIC_OPENCL STREQUAL "AUTO")
    message(FATAL_ERROR "DIC_OPENCL=ON, but CL/cl.h was not found: install OpenCL's headers (Debian: opencl-headers), "
                        "or configure with -DDIC_OPENCL=OFF.")
  endif()
endif()
message(STATUS "OpenCL backend: ${DIC_WITH_OPENCL}")

# Configures the project as if libraries were missing: SOURCE, BINARY, GENERATOR, COMPILER.
# What is optional never ends a configuration; all that is needed is named at once.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${BINARY})
set(old_compiler ${BINARY}/nvcc)
file(WRITE ${old_compiler} "#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
set(half_mpi ${BINARY}/mpicc)
file(WRITE ${half_mpi} "#!/bin/sh\nexit 1\n")
file(CHMOD ${old_compiler} ${half_mpi} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(configure ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CUDA_COMPILER=${old_compiler} -DMPI_C_COMPILER=${half_mpi})

# expect(RESULT WORDS ...): the configuration ends with RESULT (0 = well), and says each of WORDS.
function(expect result)
  list(SUBLIST ARGV 1 -1 words)
  # CMake breaks the lines of messages.
  string(REGEX REPLACE "[ \n]+" " " said "${output}")
  if(NOT code EQUAL result)
    message(SEND_ERROR "The configuration ends with ${code}, not ${result}:\n${output}")
  endif()
  foreach(text IN LISTS words)
    string(FIND "${said}" "${text}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "The configuration does not say \"${text}\":\n${output}")
    endif()
  endforeach()
endfunction()

set(disabled "")
foreach(package GTest PkgConfig MPI Doxygen)
  list(APPEND disabled -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
execute_process(COMMAND ${configure} ${disabled} -DDIC_OPENCL_INCLUDE_DIR=
    "-DCMAKE_IGNORE_PATH=/usr/share/javascript/chart.js;/usr/share/nodejs/chart.js/dist"
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect(0 "the CUDA backend needs the CUDA toolkit 13 or newer" "CUDA backend: OFF" "OpenCL backend: OFF" "MPI is left out" "MPI: "
  "cpp-httplib was not found" "cairo was not found" "Chart.js was not found" "The tests are left out")

file(REMOVE_RECURSE ${BINARY}/build)
execute_process(COMMAND ${configure} -DDIC_BUILD_TESTS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_HDF5=ON -DCMAKE_DISABLE_FIND_PACKAGE_TIFF=ON
    -DDIC_MATIO_INCLUDE=
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect(1 "HDF5 (libhdf5-dev)" "TIFF (libtiff-dev)" "matio (libmatio-dev)" ".ci/install-dependencies")

# Registers tests. Each case of GoogleTest is a test of CTest by itself, named BINARY.Suite.Case: `ctest -R` finds it, and
# GTEST_SKIP concerns that case alone. tests/setup checks this.
find_package(GTest REQUIRED)
include(GoogleTest)

# Tests compare with naive computations; what takes time is their compilation. Hence little optimization, and the headers of GoogleTest
# are compiled once for all of them.
add_executable(dic_test_headers ${CMAKE_CURRENT_LIST_DIR}/../tests/support/test_headers.cpp)
target_link_libraries(dic_test_headers PRIVATE dic_flags GTest::gtest_main)
target_precompile_headers(dic_test_headers PRIVATE <gtest/gtest.h>)
set(DIC_TEST_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
target_compile_options(dic_test_headers PRIVATE ${DIC_TEST_OPTIONS})

# dic_add_test(NAME SOURCES ... [ROOMS ...] [LINK ...] [GPU | GPU_CASES PATTERN] [SERIAL]): one executable, linked with the rooms
# that it tests and those that they use. The cases that need a GPU get the label gpu: all with GPU, or those whose name fits PATTERN (as for
# --gtest_filter). The binary must be able to list its cases where there is no GPU. SERIAL: no other case runs beside
# them, since some need all memory of the GPU.
function(dic_add_test name)
  cmake_parse_arguments(TEST "GPU;SERIAL" "GPU_CASES" "SOURCES;ROOMS;LINK" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  set(rooms)
  if(TEST_ROOMS)
    dic_rooms_with_uses(rooms ${TEST_ROOMS})
  endif()
  if(BUILD_SHARED_LIBS AND NOT opencv_imgcodecs IN_LIST TEST_LINK)
    # As in the program, OpenCV's codecs come with the first file that needs them: each case is a process.
    list(TRANSFORM rooms REPLACE "^dic_opencv_codecs$" dic_load_codecs)
  endif()
  target_link_libraries(${name} PRIVATE dic_flags ${rooms} ${TEST_LINK} GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tests)
  target_precompile_headers(${name} REUSE_FROM dic_test_headers)
  target_compile_options(${name} PRIVATE ${DIC_TEST_OPTIONS})

  set(options TEST_PREFIX ${name}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60)
  if(NOT TEST_GPU)
    set(filter *)
    if(TEST_GPU_CASES)
      set(filter -${TEST_GPU_CASES})
    endif()
    gtest_discover_tests(${name} ${options} TEST_FILTER ${filter} PROPERTIES TIMEOUT 600)
  endif()
  if(TEST_GPU)
    set(TEST_GPU_CASES *)
  endif()
  if(TEST_SERIAL)
    set(serial RUN_SERIAL TRUE)
  endif()
  if(TEST_GPU_CASES)
    gtest_discover_tests(${name} ${options} TEST_FILTER ${TEST_GPU_CASES} PROPERTIES TIMEOUT 900 LABELS gpu ${serial})
  endif()
endfunction()

# Tests in Python run the program and read its files with the readers that users have.
set(DIC_PYTHON "" CACHE FILEPATH "Python with the packages of tests/requirements.txt; empty = the first on PATH")
if(NOT DIC_PYTHON)
  find_package(Python3 COMPONENTS Interpreter)
  set(DIC_PYTHON ${Python3_EXECUTABLE})
endif()
execute_process(COMMAND ${DIC_PYTHON} -c "import cv2, h5py, numpy, PIL, tifffile, vtk"
  RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing)
  message(WARNING "The tests in Python are disabled: \"${DIC_PYTHON}\" lacks packages of tests/requirements.txt. "
                  "Install them and set DIC_PYTHON, or run .ci/test.")
endif()

# dic_add_python_test(NAME SCRIPT): SCRIPT is run with the path of the program as its first argument. It takes long: CTest begins with it.
function(dic_add_python_test name script)
  add_test(NAME ${name}
    COMMAND ${DIC_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${script} $<TARGET_FILE:dic_program> ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 COST 10
    ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support")
  if(missing)
    set_tests_properties(${name} PROPERTIES DISABLED TRUE)
  endif()
endfunction()

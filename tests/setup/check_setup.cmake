# Builds the sample project and runs its cases: SOURCE, BINARY, GENERATOR, COMPILER, GTEST, PYTHON.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DGTest_DIR=${GTEST} -DDIC_PYTHON=${PYTHON})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} COMMAND_ERROR_IS_FATAL ANY)

# expect(GOOD|BAD COUNT [SKIPPED NAMES ...] [FAILED NAMES ...] RUN ARGUMENTS ...): runs CTest, which takes COUNT cases,
# succeeds or not, and lists these cases as skipped and as failed, no others.
function(expect outcome count)
  cmake_parse_arguments(CASES "" "" "SKIPPED;FAILED;RUN" ${ARGN})
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${BINARY} ${CASES_RUN}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(got BAD)
  if(code EQUAL 0)
    set(got GOOD)
  endif()
  if(NOT got STREQUAL outcome)
    message(SEND_ERROR "ctest ${CASES_RUN}: ${got} instead of ${outcome}\n${output}")
  endif()
  if(NOT output MATCHES "tests failed out of ${count}\n")
    message(SEND_ERROR "ctest ${CASES_RUN}: not ${count} cases\n${output}")
  endif()
  foreach(state SKIPPED FAILED)
    string(SUBSTRING ${state} 0 1 first)
    string(SUBSTRING ${state} 1 -1 rest)
    string(TOLOWER ${rest} rest)
    string(REGEX MATCHALL "[A-Za-z_.]+ \\(${first}${rest}\\)" listed "${output}")
    list(TRANSFORM listed REPLACE " .*" "")
    list(SORT listed)
    list(SORT CASES_${state})
    if(NOT "${listed}" STREQUAL "${CASES_${state}}")
      message(SEND_ERROR "ctest ${CASES_RUN}: \"${listed}\" are listed as ${state}, not \"${CASES_${state}}\"\n${output}")
    endif()
  endforeach()
endfunction()

set(ENV{DIC_REQUIRE_GPU} 0)
expect(GOOD 1 SKIPPED mixed.Sample.IsSkipped RUN -R "Sample.IsSkipped$")
expect(GOOD 2 SKIPPED mixed.Sample.IsSkipped RUN -R "Sample.(Passes|IsSkipped)$")
expect(BAD 2 SKIPPED mixed.Sample.IsSkipped FAILED mixed.Sample.Fails RUN -R "mixed.Sample.(IsSkipped|Fails)$")
expect(BAD 1 FAILED mixed.Sample.FailsAndIsSkipped RUN -R FailsAndIsSkipped)
expect(BAD 2 SKIPPED gpu_only.Sample.FindsNoGpu FAILED gpu_only.Sample.Fails RUN -R gpu_only)

expect(GOOD 2 SKIPPED mixed.SampleOnGpu.FindsNone gpu_only.Sample.FindsNoGpu RUN -L "^gpu$" -E Fails)
expect(BAD 4 SKIPPED mixed.Sample.IsSkipped FAILED mixed.Sample.Fails mixed.Sample.FailsAndIsSkipped RUN -LE "^gpu$")
set(ENV{DIC_REQUIRE_GPU} 1)
expect(BAD 2 FAILED mixed.SampleOnGpu.FindsNone gpu_only.Sample.FindsNoGpu RUN -L "^gpu$" -E Fails)

# llmprof_add_library: one static library per folder of libs/, with its layer. An edge may only go to a
# strictly lower layer; a wrong edge is a configure error. tools/check_includes.py holds the #includes to the
# same declarations (it reads the DEPS written here), because a shared include root would let anything compile.

set(LLMPROF_LAYER_base 0)
set(LLMPROF_LAYER_wire 0)
set(LLMPROF_LAYER_host 1)
set(LLMPROF_LAYER_hw 1)
set(LLMPROF_LAYER_model 1)
set(LLMPROF_LAYER_trace 1)
set(LLMPROF_LAYER_bench 2)
set(LLMPROF_LAYER_record 2)
set(LLMPROF_LAYER_analyze 3)
set(LLMPROF_LAYER_report 4)
# Islands: no library may depend on them. collect uses wire only; workload uses base only.
set(LLMPROF_LAYER_collect 9)
set(LLMPROF_LAYER_workload 9)

function(llmprof_check_edge name dep)
  if(NOT DEFINED LLMPROF_LAYER_${dep})
    message(FATAL_ERROR "layering: ${name} uses ${dep}, which has no layer in LlmprofLibrary.cmake")
  endif()
  if(NOT LLMPROF_LAYER_${dep} LESS LLMPROF_LAYER_${name})
    message(FATAL_ERROR "layering: ${name} (layer ${LLMPROF_LAYER_${name}}) may not use "
                        "${dep} (layer ${LLMPROF_LAYER_${dep}})")
  endif()
endfunction()

# llmprof_add_library(<name> SOURCES a.cpp… DEPS base…): sources are relative to libs/<name>.
function(llmprof_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(llmprof_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(llmprof_${name} PRIVATE llmprof_warnings)
    set_target_properties(llmprof_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    add_library(llmprof_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(llmprof_${name} ${scope} ${PROJECT_SOURCE_DIR}/libs)
  foreach(dep IN LISTS ARG_DEPS)
    llmprof_check_edge(${name} ${dep})
    target_link_libraries(llmprof_${name} ${scope} llmprof_${dep})
  endforeach()
endfunction()

# `${LLMPROF_WATCHDOG} SECONDS -- COMMAND…` shows the stacks of a test that hangs, and ends it.
if(LLMPROF_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(LLMPROF_WATCHDOG ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/watchdog.py)
endif()

# llmprof_add_test(<lib> SOURCES x_test.cpp… [LIBS extra…]): one test program per library, ctest label = library.
function(llmprof_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT LLMPROF_TESTS)
    return()
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_LIBS} llmprof_warnings GTest::gmock GTest::gtest_main)
  if(TARGET llmprof_${name})
    target_link_libraries(${name}_test PRIVATE llmprof_${name})
  endif()
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/libs ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME unit.${name} COMMAND ${LLMPROF_WATCHDOG} 240 -- $<TARGET_FILE:${name}_test>)
  set_tests_properties(unit.${name} PROPERTIES LABELS ${name} TIMEOUT 300)
endfunction()

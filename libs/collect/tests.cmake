# Programs and libraries that the tests run under the collector, then the tests.
set(clients ${CMAKE_BINARY_DIR}/tests/collect)

function(collect_test_binary target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/libs)
  target_link_libraries(${target} PRIVATE llmprof_warnings Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${clients} LIBRARY_OUTPUT_DIRECTORY ${clients}
    BUILD_RPATH "\$ORIGIN")
endfunction()

add_executable(collect_client_nvtx testing/client_nvtx.cpp)
add_executable(collect_client_blas testing/client_blas.cpp)
target_link_libraries(collect_client_blas PRIVATE llmprof_openblas)
add_executable(collect_client_open testing/client_open.cpp)
target_link_libraries(collect_client_open PRIVATE llmprof_openblas)
target_compile_options(collect_client_open PRIVATE -Wno-nonnull)  # it opens no path on purpose
add_executable(collect_client_dl testing/client_dl.cpp)
target_link_options(collect_client_dl PRIVATE -Wl,-z,dynamic-undefined-weak)
add_library(collect_plugin_bare SHARED testing/plugin_bare.cpp)
target_link_options(collect_plugin_bare PRIVATE -Wl,-z,lazy -Wl,-z,relro)
add_library(collect_interposer SHARED testing/interposer.cpp)
add_executable(collect_dump_log testing/dump_log.cpp)
set(parts collect_client_nvtx collect_client_blas collect_client_open collect_client_dl collect_plugin_bare collect_interposer collect_dump_log)
if(LLMPROF_HAVE_NVTX3)
  add_executable(collect_client_nvtx3 testing/client_nvtx.cpp)
  target_compile_definitions(collect_client_nvtx3 PRIVATE LLMPROF_REAL_NVTX3=1)
  target_link_libraries(collect_client_nvtx3 PRIVATE llmprof_cuda_headers)
  list(APPEND parts collect_client_nvtx3)
endif()

# Two BLAS libraries under the same names and one that calls itself MKL, each with a plugin that is linked to it.
set(value 0)
foreach(variant a b mkl)
  math(EXPR value "${value} + 1")
  add_library(collect_fake_${variant} SHARED testing/fake_blas.cpp)
  add_library(collect_plugin_${variant} SHARED testing/plugin.cpp)
  target_compile_definitions(collect_fake_${variant} PRIVATE LLMPROF_FAKE_VALUE=${value})
  if(variant STREQUAL "mkl")
    target_compile_definitions(collect_fake_mkl PRIVATE LLMPROF_FAKE_MKL=1)
    target_compile_definitions(collect_plugin_mkl PRIVATE LLMPROF_FAKE_MKL=1)
  endif()
  target_link_libraries(collect_plugin_${variant} PRIVATE collect_fake_${variant})
  list(APPEND parts collect_fake_${variant} collect_plugin_${variant})
endforeach()
foreach(part ${parts})
  collect_test_binary(${part})
endforeach()

# Two versions of cuBLAS, each with a plugin that is linked to it. Versions of symbols are names of files, as in the real
# libraries.
add_executable(collect_client_cublas testing/client_cublas.cpp)
collect_test_binary(collect_client_cublas)
list(APPEND parts collect_client_cublas)
function(collect_fake_cublas name version globals)
  set(target collect_${name}_${version})
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "lib${name}.so.@version@ { global: fake_state; @globals@; local: *; };\n" @ONLY)
  add_library(${target} SHARED testing/fake_cublas.cpp)
  target_compile_definitions(${target} PRIVATE LLMPROF_FAKE_VERSION=${version})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  collect_test_binary(${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .so.${version} LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${clients}/cublas)
endfunction()
set(cublas_exports cublasCreate_v2 cublasGetMathMode ${blas_exports})
list(FILTER cublas_exports INCLUDE REGEX "^cublas[^L]")
list(JOIN cublas_exports "; " cublas_globals)
foreach(version 12 13)
  collect_fake_cublas(cublas ${version} "${cublas_globals}")
  collect_fake_cublas(cublasLt ${version} "cublasLt*")
  add_library(collect_plugin_cublas_${version} SHARED testing/plugin_cublas.cpp)
  target_link_libraries(collect_plugin_cublas_${version} PRIVATE collect_cublas_${version} collect_cublasLt_${version})
  collect_test_binary(collect_plugin_cublas_${version})
  set_target_properties(collect_plugin_cublas_${version} PROPERTIES OUTPUT_NAME plugin_cublas${version}
    LIBRARY_OUTPUT_DIRECTORY ${clients}/cublas)
  list(APPEND parts collect_cublas_${version} collect_cublasLt_${version} collect_plugin_cublas_${version})
endforeach()

add_library(collect_plugin_cublas_free SHARED testing/plugin_cublas.cpp)  # bound to whatever is loaded
collect_test_binary(collect_plugin_cublas_free)
set_target_properties(collect_plugin_cublas_free PROPERTIES OUTPUT_NAME plugin_cublas_free
  LIBRARY_OUTPUT_DIRECTORY ${clients}/cublas)
list(APPEND parts collect_plugin_cublas_free)

# The collector with launch stacks that a test can ask for.
add_library(collect_stack_probe MODULE ${core} stacks/testing/stack_probe.cpp)
llmprof_in_groups(collect_stack_probe)
target_link_libraries(collect_stack_probe PRIVATE llmprof_wire)
target_compile_options(collect_stack_probe PRIVATE -O2 -fno-sanitize=all -fvisibility=hidden -fno-exceptions -fno-rtti)
target_link_options(collect_stack_probe PRIVATE -fno-sanitize=all -static-libgcc)
collect_test_binary(collect_stack_probe)

set(tests pieces_test.cpp walk_objects_test.cpp images.cpp writer/selection_parts_test.cpp writer/selection_test.cpp stacks/launch_stack_test.cpp ../host/stacks/testing/pythons.cpp nvtx_test.cpp blas_test.cpp cublas_test.cpp robustness_test.cpp testing/test_log.cpp
    tables.cpp os.cpp)
if(LLMPROF_HAVE_NVTX3)
  list(APPEND tests nvtx_abi_test.cpp)
endif()
if(LLMPROF_CUBLAS_INCLUDE)
  list(APPEND tests blas/cublas_abi_test.cpp)
endif()
llmprof_add_test(collect SOURCES ${tests} LIBS llmprof_cuda_headers Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(collect_test PRIVATE LLMPROF_TEST_LIBRARIES="${LLMPROF_LIB_OUTPUT_DIRECTORY}"
  LLMPROF_TEST_CLIENTS="${clients}" LLMPROF_HAVE_NVTX3=$<BOOL:${LLMPROF_HAVE_NVTX3}>)
target_compile_definitions(collect_test PRIVATE
  LLMPROF_STACK_CASES="${CMAKE_CURRENT_SOURCE_DIR}/stacks/testing/stack_cases.py")
add_dependencies(collect_test llmprof_inject llmprof_blas collect_stack_probe ${parts})

# Exports, needed libraries, glibc floor and hardening of both libraries.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(check ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_collector_abi.py)
list(JOIN inject_exports "," inject_list)
list(JOIN open_exports "," open_list)
set(open_constructors 0)
if(open_exports)  # it finds whom opened files are passed on to: that must not happen in a hook
  set(open_constructors 1)
endif()
add_test(NAME hygiene.collector_abi COMMAND ${check} $<TARGET_FILE:llmprof_inject> --exports ${inject_list})
add_test(NAME hygiene.collector_abi_blas
  COMMAND ${check} $<TARGET_FILE:llmprof_blas> --exports-from ${CMAKE_CURRENT_SOURCE_DIR}/blas/functions.def
          --exports "${open_list}" --constructors ${open_constructors})
set_tests_properties(hygiene.collector_abi hygiene.collector_abi_blas PROPERTIES LABELS "hygiene;collect")

include(cuda/tests.cmake)

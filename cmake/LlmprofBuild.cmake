# Compiler flags as targets: link llmprof_warnings and the flags come along.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# The build tree has the layout of an installation, so the program finds its libraries the same way in both.
set(LLMPROF_LIB_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/llmprof)

add_library(llmprof_warnings INTERFACE)
target_compile_options(llmprof_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Wimplicit-fallthrough -Wno-missing-field-initializers
                       $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>  # of loops asked to be vectorised, at -O0
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # gcc 12 warns falsely about std::string::operator+ (PR 105329)
if(LLMPROF_WERROR)
  target_compile_options(llmprof_warnings INTERFACE -Werror)
endif()

# LLMPROF_ASSERT checks are on everywhere but in release builds (base/assert.h).
add_compile_definitions($<$<NOT:$<CONFIG:Release>>:LLMPROF_ASSERTS=1>)

if(LLMPROF_SANITIZE)
  add_compile_options(-fsanitize=${LLMPROF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${LLMPROF_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

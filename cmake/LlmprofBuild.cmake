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
                       # gcc 12 warns falsely about std::string::operator+ and assignment (PR 105329, 105651).
                       "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>"
                       # In a group every file is included, and gcc takes what is included for a header.
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
if(LLMPROF_WERROR)
  target_compile_options(llmprof_warnings INTERFACE -Werror)
endif()

# LLMPROF_ASSERT checks are on everywhere but in release builds (base/assert.h).
add_compile_definitions($<$<NOT:$<CONFIG:Release>>:LLMPROF_ASSERTS=1>)

if(LLMPROF_SANITIZE)
  add_compile_options(-fsanitize=${LLMPROF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${LLMPROF_SANITIZE})
endif()

# gcc tidies its memory up from 128 MB on; a group of files needs 600. Letting it grow saves 5 to 10 % of the time.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache must not look at where a header is precompiled; and gcc has to name that header in its preprocessed text.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# CUDA is optional at build and at run time. Its headers and its compiler are looked for here; its libraries are never
# linked, only loaded at run time.
# llmprof_cuda_headers is always a target; LLMPROF_HAVE_NVTX3 says whether the real nvtx3 headers are there.
add_library(llmprof_cuda_headers INTERFACE)
set(LLMPROF_HAVE_NVTX3 OFF)
if(NOT LLMPROF_CUDA STREQUAL "off")
  find_path(LLMPROF_CUDA_INCLUDE nvtx3/nvToolsExt.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
  if(LLMPROF_CUDA_INCLUDE)
    set(LLMPROF_HAVE_NVTX3 ON)
    target_include_directories(llmprof_cuda_headers SYSTEM INTERFACE ${LLMPROF_CUDA_INCLUDE})
    message(STATUS "CUDA headers: ${LLMPROF_CUDA_INCLUDE}")
  elseif(LLMPROF_CUDA STREQUAL "on")
    message(FATAL_ERROR "LLMPROF_CUDA=on, but nvtx3/nvToolsExt.h was not found: set CUDA_HOME, or use LLMPROF_CUDA=auto")
  else()
    message(STATUS "CUDA headers: not found; the tests against the real nvtx3 headers are left out")
  endif()
endif()

# nvcc turns the kernels of libs/bench into fat binaries that the driver loads: machine code for the GPUs of this machine
# (Hopper where it has none), and PTX that the driver compiles for what is newer. The bundle has Turing, Ampere (Ada runs
# it, too) and Hopper (`make bundle`): three chips take three times as long.
set(here "90")
find_program(LLMPROF_NVIDIA_SMI nvidia-smi)
if(LLMPROF_NVIDIA_SMI AND NOT LLMPROF_CUDA_TARGETS)
  execute_process(COMMAND ${LLMPROF_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE seen ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]" seen "${seen}")
  list(TRANSFORM seen REPLACE "\\." "")
  list(FILTER seen INCLUDE REGEX "^(7[5-9]|8[0-9]|9[0-9]|1[0-9][0-9])$")
  if(seen)
    list(REMOVE_DUPLICATES seen)
    list(SORT seen COMPARE NATURAL)
    set(here "${seen}")
  endif()
endif()
set(LLMPROF_CUDA_TARGETS "${here}" CACHE STRING "compute capabilities that kernels are compiled for; the last also as PTX")
option(LLMPROF_CUDA_KERNELS "compile what runs on a GPU; off: a build that cannot use one, as where there is no nvcc" ON)
set(LLMPROF_HAVE_CUDA OFF)
if(LLMPROF_CUDA_KERNELS AND LLMPROF_HAVE_NVTX3 AND EXISTS ${LLMPROF_CUDA_INCLUDE}/cuda.h)
  find_program(LLMPROF_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  # cuBLAS's headers come apart from the compiler; the package nvidia-cublas of PyPI has them, too.
  find_path(LLMPROF_CUBLAS_INCLUDE cublasLt.h HINTS ${LLMPROF_CUDA_INCLUDE})
  if(LLMPROF_NVCC AND LLMPROF_CUBLAS_INCLUDE)
    set(LLMPROF_HAVE_CUDA ON)
    target_include_directories(llmprof_cuda_headers SYSTEM INTERFACE ${LLMPROF_CUBLAS_INCLUDE})
    message(STATUS "CUDA compiler: ${LLMPROF_NVCC}")
  elseif(LLMPROF_NVCC)
    message(STATUS "cuBLAS headers: cublasLt.h not found (CUDA's package libcublas-dev; -DLLMPROF_CUBLAS_INCLUDE=FOLDER); "
                   "in this build benchmarks and the workload cannot use a GPU, recording can")
  else()
    message(STATUS "CUDA compiler: nvcc not found; in this build benchmarks and the workload cannot use a GPU, recording can")
  endif()
endif()

# llmprof_embed_kernels(<target> NAMESPACE ns FILES a.cu…): found at run time as llmprof::<ns>::assets(), "a.fatbin".
# Without nvcc there are none.
function(llmprof_embed_kernels target)
  cmake_parse_arguments(ARG "" "NAMESPACE" "FILES" ${ARGN})
  set(fatbins "")
  if(LLMPROF_HAVE_CUDA)
    set(code "")
    foreach(capability IN LISTS LLMPROF_CUDA_TARGETS)
      list(APPEND code -gencode arch=compute_${capability},code=sm_${capability})
    endforeach()
    list(GET LLMPROF_CUDA_TARGETS -1 newest)
    list(APPEND code -gencode arch=compute_${newest},code=compute_${newest})
    foreach(file IN LISTS ARG_FILES)
      get_filename_component(name ${file} NAME_WE)
      set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.fatbin)
      # Hopper's own instructions are of sm_90a, which nothing else runs: in files so named.
      set(hopper "")
      if(name MATCHES "_hopper$" AND "90" IN_LIST LLMPROF_CUDA_TARGETS)
        set(hopper -gencode arch=compute_90a,code=sm_90a)
      endif()
      add_custom_command(OUTPUT ${fatbin}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/kernels
        COMMAND ${LLMPROF_NVCC} -fatbin -std=c++17 -O3 ${code} ${hopper} -I ${PROJECT_SOURCE_DIR}/libs -MD -MF ${fatbin}.d -MT ${fatbin}
                -o ${fatbin} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
        DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} DEPFILE ${fatbin}.d
        COMMENT "Compiling kernels of ${file}" VERBATIM)
      list(APPEND fatbins kernels/${name}.fatbin)
      target_sources(${target} PRIVATE ${fatbin})
    endforeach()
  endif()
  llmprof_embed_assets(${target} NAMESPACE ${ARG_NAMESPACE} ROOT ${CMAKE_CURRENT_BINARY_DIR} FILES ${fatbins})
endfunction()

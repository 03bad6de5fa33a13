# Pieces of GPU capture by themselves; the whole of it runs against a scripted CUPTI in tests/faults.
set(cuda_tests cuda/buffers_test.cpp cuda/graph_sampling_test.cpp cuda/kernel_sampling_test.cpp cuda/buffer_watch_test.cpp cuda/activity_test.cpp cuda/counters/choice_test.cpp cuda/counters/stalls_test.cpp cuda/counters/kernels_test.cpp)
if(LLMPROF_HAVE_NVTX3 AND EXISTS ${LLMPROF_CUDA_INCLUDE}/cupti.h)
  list(APPEND cuda_tests cuda/cupti_abi_test.cpp cuda/counters/pc_abi_test.cpp cuda/counters/profiler_abi_test.cpp)
endif()
llmprof_add_test(collect_cuda SOURCES ${cuda_tests} ${core} LIBS llmprof_cuda_headers Threads::Threads ${CMAKE_DL_LIBS})

# Programs that the tests sample: stacks known beforehand, optimised, without frame pointers.
if(LLMPROF_TESTS)
  add_library(host_victim_library SHARED stacks/testing/victim_library.c)
  foreach(victim host_victim host_victim_stripped)
    add_executable(${victim} stacks/testing/victim.c)
    target_link_libraries(${victim} PRIVATE host_victim_library Threads::Threads)
  endforeach()
  target_link_options(host_victim_stripped PRIVATE -s)
  foreach(victim host_victim host_victim_stripped host_victim_library)
    set_target_properties(${victim} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_compile_options(${victim} PRIVATE -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -fno-sanitize=all)
    target_link_options(${victim} PRIVATE -fno-sanitize=all)
  endforeach()
  add_dependencies(host_test host_victim host_victim_stripped)
  target_compile_definitions(host_test PRIVATE VICTIM="$<TARGET_FILE:host_victim>"
    VICTIM_STRIPPED="$<TARGET_FILE:host_victim_stripped>"
    PYTHON_WAITS="${CMAKE_CURRENT_LIST_DIR}/testing/python_waits.py"
    PYTHON_BURNS="${CMAKE_CURRENT_LIST_DIR}/testing/python_burns.py")
endif()

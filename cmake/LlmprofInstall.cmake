# Layout of an installation: bin/, lib/llmprof/, include/llmprof/, share/. The build tree has the same one.
# DT_RPATH and not DT_RUNPATH for the programs: libduckdb.so, loaded by dlopen, must find a bundled libstdc++ through it.
foreach(program llmprof llmprof-workload)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/llmprof")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
install(TARGETS llmprof llmprof-workload RUNTIME DESTINATION bin)
install(TARGETS llmprof_inject llmprof_blas LIBRARY DESTINATION lib/llmprof)
install(FILES ${LLMPROF_DUCKDB_DIR}/libduckdb.so DESTINATION lib/llmprof)
install(DIRECTORY include/llmprof DESTINATION include)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/llmprof)
install(DIRECTORY docs/manual docs/format DESTINATION share/doc/llmprof)

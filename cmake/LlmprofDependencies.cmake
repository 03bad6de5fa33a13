# Every dependency, in one place. tools/setup.sh installs or fetches what is missing.
find_package(Threads REQUIRED)
# fmt: headers only from the system; libs/base/fmt_definitions.cpp compiles its functions in, because the bundle must run
# where no libfmt is installed and Debian ships no archive of it.
find_path(FMT_INCLUDE fmt/format-inl.h REQUIRED)
add_library(llmprof_fmt INTERFACE)
target_include_directories(llmprof_fmt SYSTEM INTERFACE ${FMT_INCLUDE})
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# For importers: gzip, zstd, SQLite. The bundle brings those that are shared libraries (tools/bundle.sh).
find_path(ISAL_INCLUDE isa-l/igzip_lib.h REQUIRED)
find_library(ISAL_LIBRARY NAMES isal REQUIRED)
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY NAMES libzstd.a zstd REQUIRED)
find_path(SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(SQLITE_LIBRARY NAMES libsqlite3.a sqlite3 REQUIRED)
foreach(name isal zstd sqlite)
  string(TOUPPER ${name} upper)
  add_library(llmprof_${name} INTERFACE)
  target_include_directories(llmprof_${name} SYSTEM INTERFACE ${${upper}_INCLUDE})
  target_link_libraries(llmprof_${name} INTERFACE ${${upper}_LIBRARY})
endforeach()
target_link_libraries(llmprof_sqlite INTERFACE ${CMAKE_DL_LIBS} Threads::Threads m)

# libcurl: headers only; `llmprof load` loads the library at run time.
find_path(CURL_INCLUDE curl/curl.h)
if(NOT CURL_INCLUDE)
  message(FATAL_ERROR "curl/curl.h was not found: install libcurl4-openssl-dev, or run tools/setup.sh (make does it for you)")
endif()
add_library(llmprof_curl_headers INTERFACE)
target_include_directories(llmprof_curl_headers SYSTEM INTERFACE ${CURL_INCLUDE})

# DuckDB: only its C header is compiled against; the library is loaded on first use (libs/trace/duckdb_api.h).
set(LLMPROF_DUCKDB_DIR ${LLMPROF_THIRD_PARTY}/duckdb)
if(NOT EXISTS ${LLMPROF_DUCKDB_DIR}/duckdb.h OR NOT EXISTS ${LLMPROF_DUCKDB_DIR}/libduckdb.so)
  message(FATAL_ERROR "DuckDB is not in ${LLMPROF_DUCKDB_DIR}: run tools/setup.sh (make does it for you)")
endif()
add_library(llmprof_duckdb_header INTERFACE)
target_include_directories(llmprof_duckdb_header SYSTEM INTERFACE ${LLMPROF_DUCKDB_DIR})
file(MAKE_DIRECTORY ${LLMPROF_LIB_OUTPUT_DIRECTORY})
file(CREATE_LINK ${LLMPROF_DUCKDB_DIR}/libduckdb.so ${LLMPROF_LIB_OUTPUT_DIRECTORY}/libduckdb.so SYMBOLIC)

# OpenBLAS: used by the embedded workload and by tests.
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu openblas REQUIRED)
find_library(OPENBLAS_LIBRARY NAMES openblas REQUIRED)
add_library(llmprof_openblas INTERFACE)
target_include_directories(llmprof_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(llmprof_openblas INTERFACE ${OPENBLAS_LIBRARY})

#pragma once
// The C interface of DuckDB 1.4, loaded on first use from the library folder. Only libs/trace includes this.

#include <duckdb.h>

#include <string>

#include "base/result.h"

namespace llmprof::trace {

struct DuckDbApi {
  decltype(&::duckdb_create_config) create_config = nullptr;
  decltype(&::duckdb_set_config) set_config = nullptr;
  decltype(&::duckdb_destroy_config) destroy_config = nullptr;
  decltype(&::duckdb_open_ext) open_ext = nullptr;
  decltype(&::duckdb_close) close = nullptr;
  decltype(&::duckdb_connect) connect = nullptr;
  decltype(&::duckdb_disconnect) disconnect = nullptr;
  decltype(&::duckdb_free) free = nullptr;

  decltype(&::duckdb_extract_statements) extract_statements = nullptr;
  decltype(&::duckdb_extract_statements_error) extract_statements_error = nullptr;
  decltype(&::duckdb_destroy_extracted) destroy_extracted = nullptr;
  decltype(&::duckdb_prepare_extracted_statement) prepare_extracted_statement = nullptr;
  decltype(&::duckdb_prepare_error) prepare_error = nullptr;
  decltype(&::duckdb_destroy_prepare) destroy_prepare = nullptr;
  decltype(&::duckdb_nparams) nparams = nullptr;
  decltype(&::duckdb_prepared_statement_type) prepared_statement_type = nullptr;
  decltype(&::duckdb_prepared_statement_column_count) prepared_column_count = nullptr;
  decltype(&::duckdb_prepared_statement_column_name) prepared_column_name = nullptr;
  decltype(&::duckdb_prepared_statement_column_type) prepared_column_type = nullptr;
  decltype(&::duckdb_pending_prepared_streaming) pending_prepared_streaming = nullptr;
  decltype(&::duckdb_pending_error) pending_error = nullptr;
  decltype(&::duckdb_execute_pending) execute_pending = nullptr;
  decltype(&::duckdb_destroy_pending) destroy_pending = nullptr;

  decltype(&::duckdb_query) query = nullptr;
  decltype(&::duckdb_result_error) result_error = nullptr;
  decltype(&::duckdb_destroy_result) destroy_result = nullptr;
  decltype(&::duckdb_fetch_chunk) fetch_chunk = nullptr;
  decltype(&::duckdb_column_count) column_count = nullptr;
  decltype(&::duckdb_column_name) column_name = nullptr;
  decltype(&::duckdb_column_type) column_type = nullptr;
  decltype(&::duckdb_column_logical_type) column_logical_type = nullptr;

  decltype(&::duckdb_create_logical_type) create_logical_type = nullptr;
  decltype(&::duckdb_create_enum_type) create_enum_type = nullptr;
  decltype(&::duckdb_destroy_logical_type) destroy_logical_type = nullptr;
  decltype(&::duckdb_decimal_scale) decimal_scale = nullptr;
  decltype(&::duckdb_decimal_internal_type) decimal_internal_type = nullptr;

  decltype(&::duckdb_destroy_data_chunk) destroy_data_chunk = nullptr;
  decltype(&::duckdb_data_chunk_get_vector) chunk_vector = nullptr;
  decltype(&::duckdb_data_chunk_get_size) chunk_size = nullptr;
  decltype(&::duckdb_data_chunk_set_size) set_chunk_size = nullptr;
  decltype(&::duckdb_vector_size) vector_size = nullptr;
  decltype(&::duckdb_vector_get_data) vector_data = nullptr;
  decltype(&::duckdb_vector_get_validity) vector_validity = nullptr;
  decltype(&::duckdb_vector_ensure_validity_writable) ensure_validity_writable = nullptr;
  decltype(&::duckdb_vector_reference_vector) reference_vector = nullptr;

  decltype(&::duckdb_create_table_function) create_table_function = nullptr;
  decltype(&::duckdb_destroy_table_function) destroy_table_function = nullptr;
  decltype(&::duckdb_table_function_set_name) table_function_set_name = nullptr;
  decltype(&::duckdb_table_function_add_parameter) table_function_add_parameter = nullptr;
  decltype(&::duckdb_table_function_set_bind) table_function_set_bind = nullptr;
  decltype(&::duckdb_table_function_set_init) table_function_set_init = nullptr;
  decltype(&::duckdb_table_function_set_function) table_function_set_function = nullptr;
  decltype(&::duckdb_register_table_function) register_table_function = nullptr;
  decltype(&::duckdb_bind_get_parameter) bind_get_parameter = nullptr;
  decltype(&::duckdb_bind_add_result_column) bind_add_result_column = nullptr;
  decltype(&::duckdb_bind_set_bind_data) bind_set_bind_data = nullptr;
  decltype(&::duckdb_bind_set_cardinality) bind_set_cardinality = nullptr;
  decltype(&::duckdb_function_get_bind_data) function_get_bind_data = nullptr;
  decltype(&::duckdb_function_set_error) function_set_error = nullptr;
  decltype(&::duckdb_get_uint64) get_uint64 = nullptr;
  decltype(&::duckdb_destroy_value) destroy_value = nullptr;
};

// The folder of our own libraries: $LLMPROF_LIBDIR, else ../lib/llmprof beside the folder of the running program.
std::string library_folder();

// Loads it once per process; the same answer ever after.
const Result<DuckDbApi>& duckdb_api();

}  // namespace llmprof::trace

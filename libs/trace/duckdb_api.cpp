#include "trace/duckdb_api.h"

#include <unistd.h>
#include <climits>

#include <vector>

#include "base/dynlib.h"
#include "base/file.h"

namespace llmprof::trace {
namespace {

using base::bind;

constexpr base::Binding<DuckDbApi> kSymbols[] = {
    bind<&DuckDbApi::create_config>("duckdb_create_config"),
    bind<&DuckDbApi::set_config>("duckdb_set_config"),
    bind<&DuckDbApi::destroy_config>("duckdb_destroy_config"),
    bind<&DuckDbApi::open_ext>("duckdb_open_ext"),
    bind<&DuckDbApi::close>("duckdb_close"),
    bind<&DuckDbApi::connect>("duckdb_connect"),
    bind<&DuckDbApi::disconnect>("duckdb_disconnect"),
    bind<&DuckDbApi::free>("duckdb_free"),
    bind<&DuckDbApi::extract_statements>("duckdb_extract_statements"),
    bind<&DuckDbApi::extract_statements_error>("duckdb_extract_statements_error"),
    bind<&DuckDbApi::destroy_extracted>("duckdb_destroy_extracted"),
    bind<&DuckDbApi::prepare_extracted_statement>("duckdb_prepare_extracted_statement"),
    bind<&DuckDbApi::prepare_error>("duckdb_prepare_error"),
    bind<&DuckDbApi::destroy_prepare>("duckdb_destroy_prepare"),
    bind<&DuckDbApi::nparams>("duckdb_nparams"),
    bind<&DuckDbApi::prepared_statement_type>("duckdb_prepared_statement_type"),
    bind<&DuckDbApi::prepared_column_count>("duckdb_prepared_statement_column_count"),
    bind<&DuckDbApi::prepared_column_name>("duckdb_prepared_statement_column_name"),
    bind<&DuckDbApi::prepared_column_type>("duckdb_prepared_statement_column_type"),
    bind<&DuckDbApi::pending_prepared_streaming>("duckdb_pending_prepared_streaming"),
    bind<&DuckDbApi::pending_error>("duckdb_pending_error"),
    bind<&DuckDbApi::execute_pending>("duckdb_execute_pending"),
    bind<&DuckDbApi::destroy_pending>("duckdb_destroy_pending"),
    bind<&DuckDbApi::query>("duckdb_query"),
    bind<&DuckDbApi::result_error>("duckdb_result_error"),
    bind<&DuckDbApi::destroy_result>("duckdb_destroy_result"),
    bind<&DuckDbApi::fetch_chunk>("duckdb_fetch_chunk"),
    bind<&DuckDbApi::column_count>("duckdb_column_count"),
    bind<&DuckDbApi::column_name>("duckdb_column_name"),
    bind<&DuckDbApi::column_type>("duckdb_column_type"),
    bind<&DuckDbApi::column_logical_type>("duckdb_column_logical_type"),
    bind<&DuckDbApi::create_logical_type>("duckdb_create_logical_type"),
    bind<&DuckDbApi::create_enum_type>("duckdb_create_enum_type"),
    bind<&DuckDbApi::destroy_logical_type>("duckdb_destroy_logical_type"),
    bind<&DuckDbApi::decimal_scale>("duckdb_decimal_scale"),
    bind<&DuckDbApi::decimal_internal_type>("duckdb_decimal_internal_type"),
    bind<&DuckDbApi::destroy_data_chunk>("duckdb_destroy_data_chunk"),
    bind<&DuckDbApi::chunk_vector>("duckdb_data_chunk_get_vector"),
    bind<&DuckDbApi::chunk_size>("duckdb_data_chunk_get_size"),
    bind<&DuckDbApi::set_chunk_size>("duckdb_data_chunk_set_size"),
    bind<&DuckDbApi::vector_size>("duckdb_vector_size"),
    bind<&DuckDbApi::vector_data>("duckdb_vector_get_data"),
    bind<&DuckDbApi::vector_validity>("duckdb_vector_get_validity"),
    bind<&DuckDbApi::ensure_validity_writable>("duckdb_vector_ensure_validity_writable"),
    bind<&DuckDbApi::reference_vector>("duckdb_vector_reference_vector"),
    bind<&DuckDbApi::create_table_function>("duckdb_create_table_function"),
    bind<&DuckDbApi::destroy_table_function>("duckdb_destroy_table_function"),
    bind<&DuckDbApi::table_function_set_name>("duckdb_table_function_set_name"),
    bind<&DuckDbApi::table_function_add_parameter>("duckdb_table_function_add_parameter"),
    bind<&DuckDbApi::table_function_set_bind>("duckdb_table_function_set_bind"),
    bind<&DuckDbApi::table_function_set_init>("duckdb_table_function_set_init"),
    bind<&DuckDbApi::table_function_set_function>("duckdb_table_function_set_function"),
    bind<&DuckDbApi::register_table_function>("duckdb_register_table_function"),
    bind<&DuckDbApi::bind_get_parameter>("duckdb_bind_get_parameter"),
    bind<&DuckDbApi::bind_add_result_column>("duckdb_bind_add_result_column"),
    bind<&DuckDbApi::bind_set_bind_data>("duckdb_bind_set_bind_data"),
    bind<&DuckDbApi::bind_set_cardinality>("duckdb_bind_set_cardinality"),
    bind<&DuckDbApi::function_get_bind_data>("duckdb_function_get_bind_data"),
    bind<&DuckDbApi::function_set_error>("duckdb_function_set_error"),
    bind<&DuckDbApi::get_uint64>("duckdb_get_uint64"),
    bind<&DuckDbApi::destroy_value>("duckdb_destroy_value"),
};

Result<DuckDbApi> load() {
  const std::vector<std::string> names{library_folder() + "/libduckdb.so"};
  auto api = base::load_api<DuckDbApi>(names, std::span<const base::Binding<DuckDbApi>>(kSymbols));
  if (!api) {
    api.error().hint = "llmprof needs its lib/llmprof folder beside its bin folder; LLMPROF_LIBDIR names another place";
  }
  return api;
}

}  // namespace

std::string library_folder() {
  if (const std::string folder = base::env_or("LLMPROF_LIBDIR", ""); !folder.empty()) return folder;
  char path[PATH_MAX];
  const ssize_t bytes = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return program.substr(0, program.rfind('/') + 1) + "../lib/llmprof";
}

const Result<DuckDbApi>& duckdb_api() {
  static const Result<DuckDbApi> api = load();
  return api;
}

}  // namespace llmprof::trace

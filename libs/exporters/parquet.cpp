// A Parquet file per table, of the selected rows: the same columns as in the run, one file each.
#include <fmt/format.h>

#include "exporters/output_file.h"
#include "exporters/table_list.h"

namespace llmprof::exporters {
namespace parquet {
namespace {

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_TRY(make_folder(request.output));
  Written written;
  TableProgress progress(request, tables.size());
  for (const ExportTable& table : tables) {
    if (!progress.begin_table()) return Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
    written.files.push_back(request.output + "/" + table.name + ".parquet");
    LLMPROF_LET(const std::int64_t rows, request.run.user_query_to_parquet(table.sql, written.files.back()));
    open_to_readers(written.files.back());
    written.records += rows;
  }
  return written;
}

}  // namespace
}  // namespace parquet

extern const Exporter kParquet;
const Exporter kParquet{"parquet", "a Parquet file per table", "", parquet::write};

}  // namespace llmprof::exporters

#pragma once
// The tables of a run as SQL views.

#include <string>
#include <vector>

#include "trace/parquet.h"
#include "trace/schema.h"

namespace llmprof::trace {

// CREATE VIEW for every table of the schema: the given files, or an empty relation of the right types; columns that the
// files do not have are NULL. Last, kernel_all (measured kernels and estimated ones), and work and work_sum (the same
// for sums).
std::vector<std::string> view_statements(const std::vector<OpenFile>& files, const ColumnsOfTables& columns);

}  // namespace llmprof::trace

#pragma once
// A Parquet file that somebody else wrote. Its bytes are for a process that can do no harm (importers/sandbox.h): the
// engine is made ready before, where nothing of the file is read yet, and asked there.

#include <memory>
#include <string>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::trace {

class ForeignParquet {
 public:
  // One thread, 256 MiB, no extensions, no settings, this path and no other. Reads nothing of the file.
  static Result<ForeignParquet> prepare(const std::string& path);
  ForeignParquet(ForeignParquet&&) noexcept;
  ForeignParquet& operator=(ForeignParquet&&) = delete;
  ~ForeignParquet();

  // All rows: `columns` is called once, then `row` for each. Numbers, booleans and text; anything else comes as text.
  Result<void> each(const ColumnSink& columns, const RowSink& row) const;

 private:
  struct State;
  explicit ForeignParquet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace llmprof::trace

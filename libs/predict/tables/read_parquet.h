#pragma once
// A table of another tool as Parquet, read in a child process that can open this file and nothing else.

#include <string>

#include "base/result.h"

namespace llmprof::predict {

// The file as CSV text, at most `most` bytes of it: numbers so that they come back as they were, text as it is. An
// error: what the engine says of the file, text that CSV cannot hold without quotes, a child that was stopped.
Result<std::string> parquet_as_csv(const std::string& path, std::uint64_t most);

}  // namespace llmprof::predict

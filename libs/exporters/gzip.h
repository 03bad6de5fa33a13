#pragma once
// gzip of bytes that are in memory.

#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::exporters {

Result<std::string> gzip(std::string_view bytes);

}  // namespace llmprof::exporters
